"""What types spend in a day: added up over all attempts, whatever became of them, and begun anew at midnight."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from board.db.engine import Database
from board.ports import Cause as Why
from board.ports import ErrorClass, Failure, Job, NotStarted, Outcome, Success
from board.queue import spending
from board.queue.spending import Spent
from board.queue.usage import Now
from tests.heart import settable_clock
from tests.rig.working import OpenWorking, Probe, WorkingBoard


def today(board: WorkingBoard) -> dict[str, Spent]:
    zone = ZoneInfo(board.board.settings.timezone)
    with board.board.db.read() as connection:
        return spending.today(connection, Now(datetime.now(UTC), zone))


def put(db: Database, *spent: Spent, zone: str = "UTC") -> None:
    with db.write() as tx:
        spending.add(tx, spent, zone)


def read(db: Database, moment: str, zone: str = "UTC") -> dict[str, Spent]:
    with db.read() as connection:
        return spending.today(connection, Now(datetime.fromisoformat(moment), ZoneInfo(zone)))


def test_a_day_ends_at_midnight_of_the_boards_zone(db: Database) -> None:
    """In Shanghai it is the next day eight hours before it is in UTC."""
    with settable_clock(db) as at:
        before, after = "2026-06-01T15:59:59+00:00", "2026-06-01T16:00:01+00:00"
        for moment, tokens in ((before, 5), (after, 70)):
            at((datetime.fromisoformat(moment) - datetime.now(UTC)).total_seconds())
            put(db, Spent("a", 1, tokens), zone="Asia/Shanghai")
    assert read(db, before, "Asia/Shanghai") == {"a": Spent("a", 1, 5)}
    assert read(db, after, "Asia/Shanghai") == {"a": Spent("a", 1, 70)}


def test_many_are_added_in_one_go(db: Database) -> None:
    put(db, Spent("b", 1, 10), Spent("a", 1, 1), Spent("b", 2, 20))
    put(db, Spent("b", 1, 5))
    put(db)
    assert read(db, datetime.now(UTC).isoformat()) == {"a": Spent("a", 1, 1), "b": Spent("b", 4, 35)}


@pytest.mark.parametrize(
    ("outcome", "counted"),
    [
        (Success({}, tokens=600), Spent("trial", 1, 600)),
        (Failure(ErrorClass.PERMANENT, Why.UNKNOWN, "It failed.", tokens=40), Spent("trial", 1, 40)),
        (Failure(ErrorClass.PERMANENT, Why.AUTH, "Refused."), Spent("trial", 1, 0)),
    ],
    ids=["worked", "failed after tokens", "refused"],
)
def test_a_call_counts_however_it_ended(working: OpenWorking, outcome: Outcome, counted: Spent) -> None:
    async def call(job: Job) -> Outcome:
        await job.send(kind="trial.run", target="the trial", request=b"{}")
        return outcome

    it = working(Probe(call))
    it.type()
    it.submit()
    it.wait("T-1", "done", "failed")
    assert today(it) == {"trial": counted}


def test_who_calls_nobody_spends_nothing(working: OpenWorking) -> None:
    async def think(job: Job) -> Outcome:
        return Success({})

    it = working(Probe(think))
    it.type()
    it.submit()
    it.wait("T-1", "done")
    assert today(it) == {}


def test_to_ask_what_became_of_a_call_is_no_further_call(working: OpenWorking) -> None:
    async def lost(job: Job) -> Outcome:
        await job.send(kind="trial.run", target="the trial", request=b"{}")
        return Failure(ErrorClass.TRANSIENT, Why.NETWORK, "Lost.", open_operation=True)

    async def found(job: Any, operation: Any) -> Outcome | NotStarted:
        return Success({}, tokens=7)

    it = working(Probe(lost, found))
    it.type()
    it.submit()
    it.wait("T-1", "done")
    assert len(it.attempts()) == 2
    assert today(it) == {"trial": Spent("trial", 1, 7)}


def test_what_an_action_sends_is_not_the_types_work(working: OpenWorking) -> None:
    async def call(job: Job) -> Outcome:
        if job.phase == "act":
            await job.send(kind="trial.act", target="the trial", request=b"{}")
        return Success({})

    it = working(Probe(call))
    it.type(action={"use": "probe"})
    it.submit()
    it.wait("T-1", "done")
    assert today(it) == {}


def test_a_call_of_a_cancelled_attempt_counts(working: OpenWorking) -> None:
    import asyncio

    async def call(job: Job) -> Outcome:
        await job.send(kind="trial.run", target="the trial", request=b"{}")
        await asyncio.Event().wait()
        raise AssertionError

    it = working(Probe(call))
    it.type()
    it.submit()
    it.until(lambda: bool(it.operations()))
    it.cancel("T-1")
    it.board.consumer.look_for_cancelled()  # type: ignore[union-attr]
    it.wait("T-1", "cancelled")
    it.until(lambda: today(it) == {"trial": Spent("trial", 1, 0)})
