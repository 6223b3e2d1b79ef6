"""The figures of the made-up fortnight, each counted by hand from the table in fortnight.py."""

from datetime import UTC, datetime
from typing import Any

import pytest

from board.db.engine import Database
from board.reports.facts import compared, facts
from board.reports.weeks import Week, Window
from tests.reports import fortnight
from tests.reports.log import DAY, HOUR, Story, at

LATER = datetime(2027, 1, 1, tzinfo=UTC)
W47, W48 = Week(2026, 47), Week(2026, 48)


def figures(db: Database, week: Week, zone: str = "UTC", **options: Any) -> dict[str, Any]:
    with db.read() as connection:
        return facts(connection, Window.of(week, zone, LATER), **options)


@pytest.fixture
def told(db: Database) -> dict[str, Any]:
    with db.write() as tx:
        fortnight.write(tx)
    return figures(db, W48)


def test_ends(told: dict[str, Any]) -> None:
    # Done: A1 A2 A4 B1 B2 B3 B8 C3 D1, not C2. Failed: A3 (once), A4, A5. Cancelled: B4, B5, C1, not B3.
    assert told["headline"] | {"timed_out": 0, "review_wait_p50": 0, "override_rate": 0} == {
        **{"done": 9, "failed": 3, "cancelled": 3},
        **{"timed_out": 0, "review_wait_p50": 0, "override_rate": 0},
    }
    assert told["cancelled"] == {"rejected": 1, "expired": 1, "dropped": 0, "caller": 1, "board": 0}
    assert told["completion"] == 0.6  # 9 of 15
    # Made: A1 to A5, B1 to B4, B6 to B8, C1, C2, D1; not B5, C3.
    assert told["created"] == 15
    assert told["sent_again_differently"] == 1


def test_days(told: dict[str, Any]) -> None:
    days = told["days"]
    # Monday: A1 A2 B1 B2 B3 C3 done (six), C1 cancelled. Tuesday: A4 done and failed, B4 cancelled.
    assert [it["done"] for it in days] == [6, 1, 1, 0, 0, 1, 0]
    assert [it["failed"] for it in days] == [0, 1, 1, 1, 0, 0, 0]  # A3 by its last failure, on Wednesday
    assert [it["cancelled"] for it in days] == [1, 1, 1, 0, 0, 0, 0]
    assert [it["created"] for it in days] == [6, 3, 1, 1, 2, 0, 2]


def test_failures(told: dict[str, Any]) -> None:
    causes = {it["cause"]: (it["n"], it["example"]) for it in told["failures"]["causes"]}
    assert causes == {"upstream_5xx": (1, "A3"), "unknown": (1, "A4"), "crash": (1, "A5")}
    assert told["failures"]["much_unknown"] is True  # a third
    # Letters ended: A1 A2 A4 C3 D1 done, A3 A4 A5 failed, C1 cancelled. Replies ended six, none failed.
    (worst,) = told["failing_types"]
    assert (worst["type"], worst["n"], worst["failed"], worst["rate"]) == ("letters", 9, 3, 0.333333)
    assert worst["at_least"] == pytest.approx(0.1206, abs=1e-4)  # Wilson, 3 of 9


def test_timed_out(told: dict[str, Any]) -> None:
    # A2's first attempt; D1's deadline; B5 expired and B6 overdue.
    assert told["timed_out"] == {"n": 4, "handlers": 1, "deadlines": 1, "reviews": 2}


def test_retries(told: dict[str, Any]) -> None:
    # A2 once, A5 twice; of the two tasks A2 ended done. What a person requeued is no retry.
    assert told["retries"] == {"n": 3, "tasks": 2, "ended_done": 1, "share_done": 0.5}


def test_time_in_state(told: dict[str, Any]) -> None:
    # Retrying: 300 s (A2), 10 s and 10 s (A5).
    assert told["states"]["retrying"] == {"n": 3, "p50": 10.0, "p90": None, "max": 300.0}
    # Reviews left: B1 1 h, B2 2 h, B3 30 min and 3:29:55, B4 10 min, B5 3 d and 1 s, B8 33 h: the fourth of seven.
    review = told["states"]["needs_review"]
    assert (review["n"], review["p50"], review["p90"]) == (7, 2 * HOUR, None)
    assert review["max"] == 3 * DAY + 1
    # Ran to an end in the week: A1 30, A2 60 and 90, A3 10 and 20, A4 10 and 10, A5 60, 60, 60, B1 B2 B3 B4 B6 B7 B8
    # an hour each, C3 10, D1 100: 19 of them, the 10th of 10 10 10 10 20 30 60 60 60 60 is 60, the 18th is 3600.
    assert told["states"]["running"] == {"n": 19, "p50": 60.0, "p90": HOUR, "max": HOUR}


def test_open_visits_are_told_apart(told: dict[str, Any]) -> None:
    # At the end B6 has been in review for 2 h and B7 for 2 d 23 h; C2 waits since Sunday 23:00.
    review = told["open_states"]["needs_review"]
    assert (review["n"], review["p50"], review["max"]) == (2, 2 * HOUR, 2 * DAY + 23 * HOUR)
    assert told["open_states"]["pending"] == {"n": 1, "p50": HOUR, "p90": None, "max": HOUR}
    assert set(told["open_states"]) == {"needs_review", "pending"}


def test_review_wait(told: dict[str, Any]) -> None:
    # B1 1 h, B2 2 h, B3 4 h (from its first opening to the decision that stood), B4 10 min. B8 is no verdict.
    wait = told["review_wait"]
    assert (wait["n"], wait["p50"], wait["max"]) == (4, HOUR, 4 * HOUR)
    assert [it["type"] for it in wait["by_type"]] == ["replies"]
    # Opened: B1 after 30 min, 30 min before its decision; B2 after 15 min, 1:45 before.
    assert (wait["until_opened"]["n"], wait["until_opened"]["p50"]) == (2, HOUR / 4)
    assert (wait["from_opened"]["p50"], wait["from_opened"]["max"]) == (HOUR / 2, 1.75 * HOUR)
    assert told["headline"]["review_wait_p50"] == HOUR


def test_overrides_and_agreement(told: dict[str, Any]) -> None:
    overrides = told["overrides"]
    assert {name: overrides[name] for name in ("n", "overridden", "rate", "approve", "edit", "revise", "reject")} == {
        **{"n": 4, "overridden": 2, "rate": 0.5},  # B2 edited, B4 rejected
        **{"approve": 2, "edit": 1, "revise": 0, "reject": 1},
    }
    # The AI had proposed something for B1 (approve), B2 (approve) and B3 (reject); people approved all three.
    assert told["agreement"] == {"n": 3, "same": 2, "rate": 0.666667}


def test_sample(told: dict[str, Any]) -> None:
    sampled = told["sampled"]
    assert (sampled["auto_approved"], sampled["sampled"], sampled["disagreed"]) == (2, 1, 1)  # A1, A2; B4
    assert sampled["interval"] == [pytest.approx(0.2065, abs=1e-4), 1.0]


def test_too_few_for_a_calibration(told: dict[str, Any]) -> None:
    assert told["calibration"] == {"n": 2, "bins": [], "brier": None, "ece": None, "weeks": 4}


def test_people(told: dict[str, Any]) -> None:
    li, wang = told["people"]
    assert (li["who"], li["decisions"], li["overridden"], li["approved_in_a_row"]) == ("user:li@example.org", 3, 1, 1)
    assert (wang["who"], wang["decisions"], wang["overridden"]) == ("user:wang@example.org", 1, 1)
    assert told["review_health"] == {
        **{"decisions": 4, "deciders": 2, "approved_in_a_row": 1},
        "hasty": 1,  # B2: two seconds
    }


def test_what_waits(told: dict[str, Any], db: Database) -> None:
    waiting = told["waiting"]
    assert (waiting["n"], waiting["past_due"]) == (2, 1)
    assert [it["task_id"] for it in waiting["oldest"]] == ["B7", "B6"]
    last = waiting["oldest"][1]
    assert (last["title"], last["owner"], last["age"]) == ("Answer to Mr. Berg", "user:li@example.org", 2 * HOUR)
    assert last["past_due"] is True
    hidden = figures(db, W48, titles=False)["waiting"]["oldest"]
    assert [it["title"] for it in hidden] == [None, None]


def test_unknown_outcomes(told: dict[str, Any]) -> None:
    assert told["unknown_outcomes"] == {"open": 1, "new": 2, "resolved": 1, "oldest": 2 * DAY + 23 * HOUR}


def test_ageing(told: dict[str, Any]) -> None:
    assert told["ageing"] == {"n": 1, "waited_p50": 360.0, "share_in_a_day": 1.0}


def test_by_type(told: dict[str, Any]) -> None:
    letters = next(it for it in told["types"] if it["type"] == "letters")
    assert (letters["created"], letters["done"], letters["failed"], letters["cancelled"]) == (8, 5, 3, 1)
    assert (letters["tokens"], letters["cost"]) == (300, {"USD": "0.12"})  # A1 and both attempts of A2
    assert letters["running"]["n"] == 12


def test_compared_with_the_week_before(told: dict[str, Any], db: Database) -> None:
    last = figures(db, W47)
    assert last["headline"]["done"] == 7  # six, and the review; C3 was done at the end sharp, which is W48
    found = compared(told, last)["headline"]
    assert found["done"] == {"last": 7, "difference": 2, "percent": 28.6, "better": True}
    assert found["failed"] == {"last": 5, "difference": -2, "percent": -40.0, "better": True}
    assert found["cancelled"] == {"last": 0, "difference": 3, "percent": None, "better": False}
    assert found["review_wait_p50"] == {"last": 2 * HOUR, "difference": -HOUR, "percent": -50.0, "better": True}
    assert found["override_rate"]["percent"] is None  # nothing was overridden
    assert compared(told, last)["causes"]["crash"]["difference"] == 1


def test_an_undo_after_the_week_counts_for_the_week(db: Database) -> None:
    """The rejection was the week's last act, its undo the next one's first: nothing has ended in either."""
    with db.write() as tx:
        story = Story(tx, "U1", at(13)).start(at(13)).ask(at(13, 1))
        story.decide("rejected", "cancelled", at(13, 24, -2)).move("decision_undone", "needs_review", at(14, 0, 3))
    told = figures(db, W48)
    assert told["headline"]["cancelled"] == 0
    assert told["overrides"]["n"] == 0
    assert told["waiting"]["n"] == 1


def test_an_empty_week(db: Database) -> None:
    told = figures(db, W48)
    assert told["headline"] == {
        **{"done": 0, "failed": 0, "cancelled": 0, "timed_out": 0},
        **{"review_wait_p50": None, "override_rate": None},
    }
    assert told["completion"] is None
    assert (told["states"], told["types"], told["people"]) == ({}, [], [])
    assert told["waiting"] == {"n": 0, "past_due": 0, "oldest": []}


def test_calibration(db: Database) -> None:
    """Thirty decisions: twenty at 0.95, of which 19 were approved as they were, ten at 0.6, of which 5 were."""
    with db.write() as tx:
        for number in range(30):
            sure, good = (0.95, number > 0) if number < 20 else (0.6, number % 2 == 0)
            story = Story(tx, f"K-{number}", at(7)).start(at(7)).ask(at(7, 1))
            kind, to = ("approved", "pending") if good else ("rejected", "cancelled")
            story.decide(kind, to, at(7, 2, number), confidence=sure)
    told = figures(db, W48)["calibration"]
    assert (told["n"], told["weeks"]) == (30, 1)
    assert [it["n"] for it in told["bins"]] == [0, 10, 0, 0, 20]
    assert told["bins"][1] | {"from": 0, "to": 0} == {
        **{"from": 0, "to": 0, "n": 10},
        **{"confidence": 0.6, "approved": 0.5, "gap": 0.1},
    }
    assert told["bins"][4]["gap"] == 0.0
    assert told["ece"] == pytest.approx(0.0333, abs=1e-4)  # a third of the decisions with a gap of 0.1
    # 19 · 0.05² + 1 · 0.95² + 5 · 0.4² + 5 · 0.6², over 30
    assert told["brier"] == pytest.approx(0.1183, abs=1e-4)


def test_a_week_of_another_zone(db: Database) -> None:
    """B091: finished on Sunday 23:30 and on Monday 00:30 in Shanghai, which both are a Sunday in UTC."""
    sunday, monday = datetime(2026, 3, 1, 15, 30, tzinfo=UTC), datetime(2026, 3, 1, 16, 30, tzinfo=UTC)
    with db.write() as tx:
        for name, moment in (("S", sunday), ("M", monday)):
            Story(tx, name, moment).start(moment).end("done", "done", moment)
    w9, w10 = (figures(db, Week(2026, number), "Asia/Shanghai") for number in (9, 10))
    assert [it["done"] for it in w9["days"]] == [0, 0, 0, 0, 0, 0, 1]
    assert [it["done"] for it in w10["days"]] == [1, 0, 0, 0, 0, 0, 0]
    assert figures(db, Week(2026, 9))["headline"]["done"] == 2
