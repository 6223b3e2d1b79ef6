"""What tests of the heart share: a clock that can be set, small tasks, and looks into the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, RowMapping, select, text

from board.catalogue.store import Catalogue
from board.db import clock
from board.db.engine import Database
from board.queue import ledger_queue
from board.queue.admission import Admission, Fronts
from board.queue.gate import Gate
from board.queue.limits import Rules
from board.queue.wanted import Scope, Wanted
from board.tasks.history import By
from board.tasks.ledger import Ledger
from board.tasks.models import task_events, tasks

CALLER = By("key", "n8n", "api")
OPERATOR = By("person", "li@example.org", "web")
WORKER = By("worker", "w1", "worker")
SWEEP = By("system", "sweep", "timer")


@contextmanager
def settable_clock(db: Database) -> Iterator[Callable[[float], None]]:
    """Gives `at(seconds)`, which sets the board's clock that far ahead of the real one, on either database."""

    def at(seconds: float) -> None:
        clock.set_offset(seconds)
        if not db.is_sqlite:
            with db.write() as tx:
                tx.execute(
                    text(
                        "CREATE OR REPLACE FUNCTION board_now() RETURNS timestamptz LANGUAGE sql STABLE AS "
                        f"'SELECT clock_timestamp() + make_interval(secs => {float(seconds)})'"
                    )
                )

    try:
        yield at
    finally:
        clock.set_offset(0)


@contextmanager
def frozen_clock(db: Database) -> Iterator[Callable[[float], None]]:
    """Gives `at(seconds)`: the board's clock stands still, so long after the begin of 2030, on either database."""
    base = datetime(2030, 1, 1, tzinfo=UTC)

    def at(seconds: float) -> None:
        moment = base + timedelta(seconds=seconds)
        clock.stand(moment)
        if not db.is_sqlite:
            with db.write() as tx:
                tx.execute(
                    text(
                        "CREATE OR REPLACE FUNCTION board_now() RETURNS timestamptz LANGUAGE sql STABLE AS "
                        f"$$SELECT timestamptz '{moment.isoformat()}'$$"
                    )
                )

    try:
        at(0)
        yield at
    finally:
        clock.stand(None)


def new_task(task_id: str, **columns: Any) -> dict[str, Any]:
    """A row as intake hands it to the ledger."""
    row: dict[str, Any] = {
        "task_id": task_id,
        "type": "trial",
        "type_version": 1,
        "title": "",
        "priority": 2,
        "source": None,
        "tags": [],
        "callback_url": None,
        "requester": "key:n8n",
        "run_after": None,
        "due_at": None,
        "max_retries": 2,
        "data": {"payload": {}, "payload_hash": "0" * 64, "origin": None, "note": None},
    }
    return row | columns


def create(db: Database, ledger: Ledger, task_id: str, **columns: Any) -> int:
    """The internal id of a new task."""
    with db.write() as tx:
        return ledger.create(tx, [new_task(task_id, **columns)], CALLER)[task_id]


def claim(db: Database, ledger: Ledger, lane: int = 2, limit: int = 10, **options: Any) -> list[RowMapping]:
    with db.write() as tx:
        return claim_lane(tx, ledger, lane, limit, **options)


def claim_lane(tx: Connection, ledger: Ledger, lane: int = 2, limit: int = 10, **options: Any) -> list[RowMapping]:
    """The first ready tasks of a lane, claimed in this transaction."""
    who: dict[str, Any] = {"worker": "w1", "lease": 60.0}
    who |= {name: options.pop(name) for name in ("worker", "lease", "by") if name in options}
    return ledger.claim(tx, ledger.candidates(tx, lane=lane, limit=limit, **options), **who)


def take(
    tx: Connection, ledger: Ledger, slots: int, worker: str = "w1", scope: Scope | None = None
) -> list[RowMapping]:
    """Up to so many tasks of any lane, the most urgent first."""
    scope = scope or Scope()
    shares = dict.fromkeys(scope.lanes, slots)
    wanted = Wanted(scope=scope, slots=slots, rest=slots, worker=worker, lease=60)
    return list(ledger_queue.take(tx, ledger, no_limits(tx), wanted, shares))


def no_limits(tx: Connection) -> Admission:
    """What lets everything pass, as long as there are no types in the tables."""
    return Admission(tx, Rules(catalogue()), ZoneInfo("UTC"), lambda *_: None, Fronts())


def catalogue() -> Catalogue:
    """One that opens no connection."""
    return Catalogue(None)  # type: ignore[arg-type]


def gate(db: Database, ledger: Ledger) -> Gate:
    """The gate of a queue, following the ledger."""
    made = Gate(db, ledger, catalogue(), "UTC")
    ledger.followers.append(made)
    return made


def row_of(db: Database, task: int) -> dict[str, Any]:
    with db.read() as connection:
        return dict(connection.execute(select(tasks).where(tasks.c.id == task)).mappings().one())


def events_of(connection: Connection, task: int) -> list[RowMapping]:
    query = select(task_events).where(task_events.c.task == task).order_by(task_events.c.seq)
    return list(connection.execute(query).mappings())
