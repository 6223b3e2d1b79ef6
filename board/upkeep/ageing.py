"""Nobody starves: what waited too long rises by one lane, and so does what nears its deadline; never into P0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, insert, select, update

from board.db.clock import now
from board.db.engine import Database
from board.tasks.history import TIMER, event_row
from board.tasks.ledger import Ledger
from board.tasks.models import DEADLINE_OPEN, HURRIES, WAITING, task_events, tasks

# Lanes from which tasks rise, the upper one first, so that no task rises twice in one sweep. Not P1: P0 is for outages
# and complaints and must stay empty but for them.
RISING = (2, 3)
# Tasks per lane and sweep: a backlog rises over a few minutes instead of flooding the lane above at once.
BATCH = 500


def age(db: Database, ledger: Ledger, after: float) -> int:
    """Lift tasks that have been ready for `after` seconds in their lane, oldest first. Returns how many."""
    waited = (tasks.c.lane_since <= now(-after)) & (tasks.c.ready_at <= now(-after))
    lifted = 0
    for lane in RISING:
        if _any(db, select(tasks.c.id).where(WAITING, tasks.c.lane == lane, waited)):
            with db.write() as tx:
                lifted += _lift(tx, ledger, lane, waited, "aged", {})
    return lifted


def hurry(db: Database, ledger: Ledger) -> int:
    """Lift, once, tasks of which only a tenth of the time to their deadline is left. Returns how many."""
    near = (tasks.c.hurry_at.is_not(None)) & (tasks.c.hurry_at <= now())
    if not _any(db, select(tasks.c.id).where(HURRIES, near)):
        return 0
    lifted = 0
    with db.write() as tx:
        for lane in RISING:
            lifted += _lift(tx, ledger, lane, near, "hurried", {"hurry_at": None})
        # The rest is in a lane that does not rise, or runs already.
        tx.execute(update(tasks).where(HURRIES, near).values(hurry_at=None))
    return lifted


def mark_missed(db: Database) -> int:
    """Mark tasks whose deadline has passed before they ended. Nothing else changes. Returns how many."""
    late = select(tasks.c.id).where(DEADLINE_OPEN, tasks.c.deadline_at <= now()).limit(BATCH)
    if not _any(db, late):
        return 0
    with db.write() as tx:
        return len(_change(tx, late, "deadline_missed", None, {"deadline_missed": True}))


def _any(db: Database, query: Select[Any]) -> bool:
    """A cheap look before a write transaction is begun."""
    with db.read() as connection:
        return connection.execute(query.limit(1)).first() is not None


def _lift(
    tx: Connection, ledger: Ledger, lane: int, condition: ColumnElement[bool], kind: str, columns: dict[str, Any]
) -> int:
    found = select(tasks.c.id).where(WAITING, tasks.c.lane == lane, condition).order_by(tasks.c.lane_since).limit(BATCH)
    data = {"from": f"P{lane}", "to": f"P{lane - 1}"}
    rows = _change(tx, found, kind, data, {"lane": lane - 1, "lane_since": now(), **columns})
    ledger.tell_places(tx, rows)
    return len(rows)


def _change(
    tx: Connection, found: Select[Any], kind: str, data: dict[str, Any] | None, columns: dict[str, Any]
) -> Sequence[RowMapping]:
    """Write columns to the tasks found, with one event each."""
    if tx.dialect.name == "postgresql":
        found = found.with_for_update(skip_locked=True)
    ids = list(tx.execute(found).scalars())
    if not ids:
        return []
    statement = (
        update(tasks)
        .where(tasks.c.id.in_(ids))
        .values(version=tasks.c.version + 1, event_seq=tasks.c.event_seq + 1, updated_at=now(), **columns)
        .returning(tasks)
    )
    rows = list(tx.execute(statement).mappings())
    tx.execute(insert(task_events), [event_row(row, kind, TIMER, data=data) for row in rows])
    return rows
