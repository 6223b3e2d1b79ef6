"""What time alone brings about: leases that ran out, and grace times that are over. Safe in any number of processes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, select, update

from board.catalogue.store import Catalogue
from board.db.clock import now
from board.db.engine import Database
from board.effects import incoming, open_calls, operations, outside, waits
from board.review.policy import Reason
from board.tasks.history import TIMER, By
from board.tasks.ledger import Ledger, Stale
from board.tasks.models import IN_GRACE, RUNNING, attempts, tasks
from board.tasks.states import Move, Pool

log = logging.getLogger(__name__)

SWEEP = By("system", "sweep", "timer")
BATCH = 100  # rows per transaction: others get their turn in between
# Looked for every second by processes that have nothing to do: to make a statement costs more than its execution.
_GRACE_OVER = select(tasks).where(IN_GRACE, tasks.c.has_action.is_(False), tasks.c.ready_at <= now())
_LEASE_OVER = select(tasks).where(RUNNING, tasks.c.lease_until < now()).order_by(tasks.c.lease_until)


def finish_grace(db: Database, ledger: Ledger) -> int:
    """Approved tasks with no action left become done once their grace time is over. Returns how many."""
    return _each(db, _GRACE_OVER, lambda tx, row: ledger.move(tx, row, Move.FINISH, TIMER))


def grace_over() -> ColumnElement[bool]:
    """Whether `finish_grace` finds any."""
    return _first_of(_GRACE_OVER).exists()


def rescue_leases(db: Database, ledger: Ledger, catalogue: Catalogue) -> int:
    """Tasks whose lease ran out come back, are given up, or stop when that was asked. Returns how many."""
    return _each(db, _LEASE_OVER, lambda tx, row: _rescue(tx, ledger, catalogue, row))


def wake_waiting(db: Database, ledger: Ledger) -> int:
    """Tasks that wait for another one's call go on once it is closed. Returns how many."""
    note = "The call that it waited for is closed."

    def wake(tx: Connection, row: RowMapping) -> None:
        waits.leave(tx, row["id"])
        ledger.move(tx, row, Move.RUN_NOW, SWEEP, changes={"ready_at": now()}, note=note)

    return _each(db, waits.over(), wake)


@lru_cache(maxsize=10)
def _first_of(found: Select[Any]) -> Select[int]:
    return found.with_only_columns(tasks.c.id).limit(1)


def _each(db: Database, found: Select[Any], move: Callable[[Connection, RowMapping], object]) -> int:
    """Move every row that is found, batch after batch. A row that resists is left and said; it holds up no other."""
    moved = 0
    while True:
        with db.read() as connection:  # most of the time there is nothing, and a look costs no writer's turn
            if connection.execute(_first_of(found)).first() is None:
                return moved
        batch = 0
        with db.write() as tx:
            query = found.limit(BATCH)
            if tx.dialect.name == "postgresql":
                query = query.with_for_update(skip_locked=True)
            for row in tx.execute(query).mappings().all():
                try:
                    with tx.begin_nested():
                        move(tx, row)
                    batch += 1
                except Stale:
                    log.info("task %s was settled while it was being looked at", row["task_id"])
                except Exception:
                    log.exception("task %s cannot be moved on", row["task_id"])
        moved += batch
        if batch < BATCH:
            return moved


def _rescue(tx: Connection, ledger: Ledger, catalogue: Catalogue, row: RowMapping) -> None:
    # The predicate once more, on the row itself: a heartbeat may have come in between.
    guards = [tasks.c.lease_token == row["lease_token"], tasks.c.lease_until < now()]
    note = f"The worker {row['lease_owner']} went silent."
    crashes = row["crash_count"] + 1
    most = catalogue.version(tx, row["type"], row["type_version"]).spec.max_crashes
    open_operation = open_calls.left_open(tx, row)
    announced = outside.left_open(tx, row) if row["pool"] == Pool.OUTSIDE else ()
    if row["cancel_requested"]:
        # What was sent stays open: should the task be requeued, that is asked about first.
        ledger.move(tx, row, Move.STOP, SWEEP, changes={"cancel_requested": False}, note=note, guards=guards)
    elif announced:
        # Only the program could tell what became of its calls, and it is gone.
        outside.lose(tx, announced, SWEEP, note)
        note = f"{note} It had announced a call to {announced[0]['target']} and not said what became of it."
        ledger.move(
            tx,
            row,
            Move.ASK_UNKNOWN,
            SWEEP,
            changes={"crash_count": crashes, "suspect": False, **_LOST},
            note=note,
            details={"reason": Reason.UNKNOWN_OUTCOME, "operation": announced[0]["id"]},
            guards=guards,
        )
    elif crashes < most or incoming.answers(tx, [row["id"]]):
        # What was sent stays open: the next claim asks about it, or finds what it said by callback, before anything is
        # started again.
        changes = {"crash_count": crashes, "ready_at": now(), "suspect": crashes >= most - 1}
        changes["reconciling"] = open_operation is not None
        ledger.move(tx, row, Move.RESCUE, SWEEP, changes=changes, note=note, guards=guards)
    elif open_operation is not None:
        operations.close(tx, open_operation["id"], "unknown", error=note)
        ledger.move(
            tx,
            row,
            Move.ASK_UNKNOWN,
            SWEEP,
            changes={"crash_count": crashes, "suspect": False, **_error(crashes, most)},
            note=f"{note} A call was under way, and nobody can tell what became of it.",
            details={"reason": Reason.UNKNOWN_OUTCOME, "operation": open_operation["id"]},
            guards=guards,
        )
    else:
        changes = {"crash_count": crashes, "suspect": False, **_error(crashes, most)}
        ledger.move(tx, row, Move.GIVE_UP, SWEEP, changes=changes, note=note, guards=guards)
    tx.execute(
        update(attempts)
        .where(attempts.c.task == row["id"], attempts.c.number == row["lease_token"])
        .values(finished_at=now(), outcome="lease_lost", error=note, error_cause="crash")
    )


_LOST = {
    "last_error": "its worker went silent after it had announced a call",
    "error_class": "unknown",
    "error_cause": "crash",
}


def _error(crashes: int, most: int) -> dict[str, str]:
    return {
        "last_error": f"worker died {crashes} times while it ran this task (max_crashes is {most})",
        "error_class": "permanent",
        "error_cause": "crash",
    }
