"""B085: a week has the year of its Thursday; its days are those of the zone, with 23 and 25 hours too."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from board.reports.weeks import BadWeek, Week, Window


@pytest.mark.parametrize(
    ("day", "zone", "week"),
    [
        ("2024-12-30", "UTC", "2025-W01"),
        ("2016-01-01", "UTC", "2015-W53"),
        ("2027-01-01", "UTC", "2026-W53"),
        ("2025-12-29", "Asia/Shanghai", "2026-W01"),
        ("2026-12-31", "America/New_York", "2026-W53"),
    ],
)
def test_year_and_number(day: str, zone: str, week: str) -> None:
    noon = datetime.combine(date.fromisoformat(day), datetime.min.time(), ZoneInfo(zone)) + timedelta(hours=12)
    found = Week.of(noon, ZoneInfo(zone))
    assert str(found) == week
    assert Week.read(week) == found


def test_neighbours_over_a_long_year() -> None:
    assert str(Week.read("2026-W53").next) == "2027-W01"
    assert str(Week.read("2027-W01").previous) == "2026-W53"
    assert str(Week.read("2026-W01").previous) == "2025-W52"


@pytest.mark.parametrize(
    "text", ["2025-W53", "2026-W00", "2026-W54", "2026W48", "2026-48", "", "0001-W01", "２０２６-W48"]
)
def test_no_such_week(text: str) -> None:
    with pytest.raises(BadWeek, match="week"):
        Week.read(text)


def test_the_refusal_says_what_there_is() -> None:
    with pytest.raises(BadWeek, match="2025 has no week 53; its weeks are W01 to W52"):
        Week.read("2025-W53")


@pytest.mark.parametrize(
    ("week", "hours"),
    [("2026-W13", 167), ("2026-W43", 169), ("2026-W20", 168)],  # the clock goes on, back, and neither
)
def test_hours_where_the_clock_is_changed(week: str, hours: int) -> None:
    days = Week.read(week).midnights(ZoneInfo("Europe/Berlin"))
    assert days[-1] - days[0] == timedelta(hours=hours)
    assert days[0] == Week.read(week).previous.midnights(ZoneInfo("Europe/Berlin"))[-1]


def test_a_midnight_that_is_left_out() -> None:
    """In Beirut the clock goes from 24:00 to 01:00: the day begins after the gap."""
    days = Week.read("2025-W13").midnights(ZoneInfo("Asia/Beirut"))
    assert days[6] == datetime(2025, 3, 29, 22, tzinfo=UTC)
    assert days[6].astimezone(ZoneInfo("Asia/Beirut")).hour == 1


def test_a_running_week_ends_now() -> None:
    now = datetime(2026, 11, 25, 12, tzinfo=UTC)
    assert Window.of(Week(2026, 48), "UTC", now).end == now
    assert Window.of(Week(2026, 47), "UTC", now).end == datetime(2026, 11, 23, tzinfo=UTC)
