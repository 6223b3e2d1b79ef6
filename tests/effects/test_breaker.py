"""The breaker of a connection: when it shuts, who tries it, when it opens; on both databases."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from board.db.clock import read_now
from board.db.engine import Database
from board.effects import breaker
from board.effects.models import breakers
from board.ports import Cause, ErrorClass, Failure, Job, Outcome, Success
from tests.rig.working import OpenWorking, Probe

CONNECTION = {"name": "dify", "kind": "dify", "url": "https://dify.example.org/v1", "key": "app-0123456789"}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaker, "FAILURES", 3)


def state(db: Database) -> dict[str, Any]:
    with db.read() as connection:
        rows = breaker.read(connection)
        return breaker.document(rows[0] if rows else None, read_now(connection))


def fail(db: Database, times: int, *, trial: bool = False) -> None:
    for _ in range(times):
        with db.write() as tx:
            breaker.failed(tx, "dify", "Nobody answers.", trial=trial)


def over(db: Database) -> None:
    """The time for which it is shut is over."""
    with db.write() as tx:
        tx.execute(update(breakers).values(until=read_now(tx) - timedelta(seconds=1)))


def may_try(db: Database) -> tuple[float, bool]:
    with db.write() as tx:
        return breaker.may_try(tx, "dify")


def test_it_shuts_after_so_many_failures_in_a_row_and_one_alone_tries_it(db: Database, few: None) -> None:
    fail(db, 2)
    assert (state(db)["state"], may_try(db)) == ("closed", (0.0, False))
    fail(db, 1)
    assert (state(db)["state"], state(db)["trouble"]) == ("open", "Nobody answers.")
    left, trial = may_try(db)
    assert (0 < left <= breaker.FIRST_PAUSE, trial) == (True, False)
    fail(db, 1)  # one that was under way makes it no longer
    assert may_try(db)[0] <= breaker.FIRST_PAUSE
    over(db)
    assert state(db)["state"] == "half_open"
    assert may_try(db) == (0.0, True)
    assert may_try(db)[0] > 0
    fail(db, 1, trial=True)
    assert breaker.FIRST_PAUSE < may_try(db)[0] <= 2 * breaker.FIRST_PAUSE


def test_what_works_opens_it_and_starts_the_count_anew(db: Database, few: None) -> None:
    fail(db, 3)
    with db.write() as tx:
        breaker.worked(tx, "dify")
    assert state(db) == {"state": "closed", "failures": 0, "since": None, "until": None, "trouble": None}
    fail(db, 2)
    assert state(db)["state"] == "closed"


@pytest.mark.parametrize(
    ("cause", "status", "counts"),
    [
        (Cause.NETWORK, None, True),
        (Cause.UPSTREAM_5XX, 503, True),
        (Cause.TIMEOUT, 504, True),
        (Cause.TIMEOUT, None, False),  # a long run
        (Cause.RATE_LIMIT, 429, False),
        (Cause.AUTH, 401, False),
        (Cause.UNKNOWN, None, False),  # a workflow that fails
    ],
)
def test_which_failures_are_the_connections(cause: Cause, status: int | None, counts: bool) -> None:
    assert breaker.counts(Failure(ErrorClass.TRANSIENT, cause, "x", http_status=status)) is counts


def test_tasks_wait_for_a_connection_that_fails_and_go_on_when_it_works(working: OpenWorking, few: None) -> None:
    broken = True

    async def call(job: Job) -> Outcome:
        await job.send(kind="test.call", target="dify", request=b"{}")
        if broken:
            return Failure(ErrorClass.TRANSIENT, Cause.NETWORK, "Nobody answers.")
        return Success({})

    probe = Probe(call)
    probe.connection_kind = "dify"
    it = working(probe)
    it.apply(connections=[CONNECTION])
    it.type("trial", handler={"connection": "dify"}, retry={"max": 0})
    for number in range(3):
        it.submit(f"T-{number}")
        it.wait(f"T-{number}", "failed")
    it.until(lambda: state(it.board.db)["state"] == "open")
    consumer = it.board.consumer
    assert consumer is not None
    it.until(lambda: "trial" in consumer._claimer.holds.types)
    it.submit("T-late")
    with it.board.db.read() as connection:
        waits = it.board.waiting.of(connection, [it.task("T-late")])
    [answer] = waits.values()
    assert answer["code"] == "held"
    assert "“dify” has failed 3 times in a row" in answer["message"]
    assert len(probe.seen) == 3
    broken = False
    over(it.board.db)
    it.wait("T-late", "done")
    assert state(it.board.db)["failures"] == 0
    assert it.task("T-late")["retry_count"] == 0


def test_the_tokens_of_a_day_are_counted_and_then_nothing_more_begins(working: OpenWorking) -> None:
    async def think(job: Job) -> Outcome:
        return Success({}, tokens=600)

    it = working(Probe(think))
    it.type("trial", limits={"tokens_per_day": 1000})
    for number in range(2):
        it.submit(f"T-{number}")
        it.wait(f"T-{number}", "done")
    consumer = it.board.consumer
    assert consumer is not None
    it.until(lambda: "trial" in consumer._claimer.holds.types)
    it.submit("T-late")
    with it.board.db.read() as connection:
        [answer] = it.board.waiting.of(connection, [it.task("T-late")]).values()
    assert answer["code"] == "held"
    assert "The 1,000 tokens of the type trial for today are used up" in answer["message"]
    it.type("trial", limits={"tokens_per_day": 5000})
    it.wait("T-late", "done")
