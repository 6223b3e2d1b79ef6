"""Due times: standard cron, each wall-clock time once, whatever daylight saving does."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest

from board.upkeep.cron import BadCron, Cron


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def times(cron: str, zone: str, after: str, many: int = 4) -> list[str]:
    """The next due times, written in UTC."""
    return [f"{due:%Y-%m-%d %H:%M}" for due in islice(Cron(cron, zone).after(utc(after)), many)]


@pytest.mark.parametrize(
    ("cron", "expected"),
    [  # 30 November 2026 is a Monday
        ("0 9 * * *", ["2026-12-01 09:00", "2026-12-02 09:00"]),
        ("*/20 * * * *", ["2026-11-30 16:20", "2026-11-30 16:40"]),
        ("5,35 8-9 * * *", ["2026-12-01 08:05", "2026-12-01 08:35"]),
        ("0 0 1 * *", ["2026-12-01 00:00", "2027-01-01 00:00"]),
        ("0 0 29 feb *", ["2028-02-29 00:00", "2032-02-29 00:00"]),
        ("0 9 * * 1", ["2026-12-07 09:00", "2026-12-14 09:00"]),
        ("0 9 * * 0", ["2026-12-06 09:00", "2026-12-13 09:00"]),
        ("0 9 * * 7", ["2026-12-06 09:00", "2026-12-13 09:00"]),
        ("0 9 * * 5-7", ["2026-12-04 09:00", "2026-12-05 09:00"]),
        ("0 9 * * Sat-Sun", ["2026-12-05 09:00", "2026-12-06 09:00"]),
        ("0 9 * * mon-fri", ["2026-12-01 09:00", "2026-12-02 09:00"]),
        ("0 9 * * 1/3", ["2026-12-03 09:00", "2026-12-07 09:00"]),
        ("0 9 13 * 5", ["2026-12-04 09:00", "2026-12-11 09:00"]),
        ("0 9 13 * *", ["2026-12-13 09:00", "2027-01-13 09:00"]),
    ],
)
def test_the_fields_mean_what_cron_says(cron: str, expected: list[str]) -> None:
    assert times(cron, "UTC", "2026-11-30T16:00:00", 2) == expected


def test_a_day_of_the_month_and_one_of_the_week_count_both() -> None:
    """Friday the 11th, Sunday the 13th, Friday the 18th."""
    assert times("0 9 13 * 5", "UTC", "2026-12-10T00:00:00", 3) == [
        "2026-12-11 09:00",
        "2026-12-13 09:00",
        "2026-12-18 09:00",
    ]


def test_the_zone_counts() -> None:
    assert times("0 9 * * *", "Asia/Shanghai", "2026-11-30T00:59:00", 2) == ["2026-11-30 01:00", "2026-12-01 01:00"]


def test_a_due_time_is_not_due_again_after_itself() -> None:
    assert times("0 9 * * *", "UTC", "2026-11-30T09:00:00", 1) == ["2026-12-01 09:00"]
    assert times("0 9 * * *", "UTC", "2026-11-30T08:59:59", 1) == ["2026-11-30 09:00"]


def test_a_time_that_does_not_exist_comes_once_right_after_the_gap() -> None:
    """Berlin, 29 March 2026: 02:00 to 03:00 does not exist; the gap ends at 01:00 UTC."""
    assert times("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00", 3) == [
        "2026-03-28 01:30",
        "2026-03-29 01:00",
        "2026-03-30 00:30",
    ]
    assert times("*/15 * * * *", "Europe/Berlin", "2026-03-29T00:40:00", 3) == [
        "2026-03-29 00:45",
        "2026-03-29 01:00",
        "2026-03-29 01:15",
    ]


def test_a_time_that_exists_twice_comes_once() -> None:
    """Berlin, 25 October 2026: 02:00 to 03:00 exists at 00:00 UTC and again at 01:00 UTC."""
    assert times("30 2 * * *", "Europe/Berlin", "2026-10-24T00:00:00", 3) == [
        "2026-10-24 00:30",
        "2026-10-25 00:30",
        "2026-10-26 01:30",
    ]
    assert times("0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00", 3) == [
        "2026-10-25 00:00",
        "2026-10-25 02:00",
        "2026-10-25 03:00",
    ]


@pytest.mark.parametrize("asked_at", ["2026-10-25T00:40:00", "2026-10-25T01:10:00", "2026-10-25T01:40:00"])
def test_who_asks_inside_the_repeated_hour_gets_no_repeat(asked_at: str) -> None:
    assert times("30 2 * * *", "Europe/Berlin", asked_at, 1) == ["2026-10-26 01:30"]


def test_a_gap_of_half_an_hour_and_one_of_a_whole_day() -> None:
    """Lord Howe Island skips 02:00 to 02:30; Samoa left out 30 December 2011."""
    assert times("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00", 1) == ["2026-10-03 15:30"]
    assert times("0 9 30 12 *", "Pacific/Apia", "2011-01-01T00:00:00", 1) == ["2011-12-30 10:00"]


def test_over_a_year_every_day_has_one_firing_in_every_zone() -> None:
    for zone in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Shanghai"):
        for clock in ("30 2 * * *", "0 3 * * *", "15 1 * * *"):
            found = list(islice(Cron(clock, zone).after(utc("2026-01-01T12:00:00")), 365))
            assert all(timedelta(hours=22) <= b - a <= timedelta(hours=26) for a, b in pairwise(found))


def test_the_latest_of_many_missed_times() -> None:
    cron = Cron("* * * * *", "UTC")
    found = cron.latest(utc("2016-01-01T00:00:00"), utc("2026-01-01T00:00:30"), 3)
    assert [f"{due:%Y-%m-%d %H:%M}" for due in found] == ["2025-12-31 23:58", "2025-12-31 23:59", "2026-01-01 00:00"]


def test_the_latest_reaches_back_to_the_begin_and_no_further() -> None:
    cron = Cron("0 9 * * *", "UTC")
    found = cron.latest(utc("2026-11-28T09:00:00"), utc("2026-11-30T09:00:00"), 100)
    assert [f"{due:%d %H:%M}" for due in found] == ["28 09:00", "29 09:00", "30 09:00"]
    assert cron.latest(utc("2026-11-28T09:00:01"), utc("2026-11-29T08:59:59"), 100) == []


def test_a_day_that_never_comes_has_no_time() -> None:
    assert Cron("0 0 31 2 *", "UTC").next(utc("2026-01-01T00:00:00")) is None


@pytest.mark.parametrize(
    "cron",
    [
        "",
        "* * * *",
        "* * * * * *",
        "@daily",
        "61 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "*/0 * * * *",
        "5-1 * * * *",
        "* * * * 8",
        "* * * * fri-mon",
        "* * * * montag",
        "* * last * *",
        "a b c d e",
        "0 0 * * 1st",
    ],
)
def test_what_is_no_cron_expression_is_refused_in_a_sentence(cron: str) -> None:
    with pytest.raises(BadCron) as refused:
        Cron(cron, "UTC")
    assert refused.value.field == "cron"
    assert len(str(refused.value)) > 20


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "CET+1"])
def test_an_unknown_zone_is_named(zone: str) -> None:
    with pytest.raises(BadCron) as refused:
        Cron("0 9 * * *", zone)
    assert refused.value.field == "zone"
