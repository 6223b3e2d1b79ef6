"""Nobody starves: what waited too long rises by one lane, and so does what nears its deadline; never into P0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, func, insert, not_, select, update

from board.db.clock import now
from board.db.engine import Database
from board.tasks import states
from board.tasks.history import TIMER, event_row
from board.tasks.ledger import Ledger
from board.tasks.models import DEADLINE_OPEN, HELD, HURRIES, READY, WAITING, task_events, tasks
from board.tasks.states import RANK_FIRST, RANK_USUAL, Pool
from board.tasks.view import time

# Lanes from which tasks rise, the upper one first, so that no task rises twice in one sweep. Not P1: P0 is for outages
# and complaints and must stay empty but for them.
RISING = (2, 3)
# Where a task rises no further it comes first in its lane instead: else callers on the line and approved actions, who
# come first as soon as they come, could keep it waiting for ever.
HIGHEST = (0, 1)
# Tasks per lane and sweep: a backlog rises over a few minutes instead of flooding the lane above at once.
BATCH = 500


def age(db: Database, ledger: Ledger, after: float) -> int:
    """Lift tasks that have been ready for `after` seconds in their lane, oldest first. Returns how many."""
    lifted = 0
    for lane in HIGHEST:
        if _first_ones(db, lane):
            lifted += _age(db, ledger, lane, (RANK_USUAL,), after, {"rank": RANK_FIRST})
    for lane in RISING:
        lifted += _age(db, ledger, lane, (RANK_FIRST, RANK_USUAL), after, {"lane": lane - 1})
    return lifted


def hurry(db: Database, ledger: Ledger) -> int:
    """Lift, once, tasks of which only a tenth of the time to their deadline is left. Returns how many."""
    near = (tasks.c.hurry_at.is_not(None)) & (tasks.c.hurry_at <= now())
    if not _any(db, select(tasks.c.id).where(HURRIES, near)):
        return 0
    lifted = 0
    with db.write() as tx:
        for lane in RISING:
            found = select(tasks.c.id).where(HURRIES, WAITING, tasks.c.lane == lane, near)
            ids = _locked(tx, found.order_by(tasks.c.hurry_at).limit(BATCH))
            lifted += _lift(tx, ledger, ids, "hurried", lane, {"lane": lane - 1, "hurry_at": None})
        # What runs already, or is in a lane that does not rise; what is left of a full batch has its turn next time.
        hidden = func.coalesce(
            tasks.c.status, ""
        )  # so that SQLite looks among those near their deadline, not by status
        still = tasks.c.lane.in_(RISING) & hidden.in_(states.READY)
        tx.execute(update(tasks).where(HURRIES, near, not_(still)).values(hurry_at=None))
    return lifted


def mark_missed(
    db: Database,
    ledger: Ledger,
    missed: Callable[[Connection, Sequence[RowMapping]], None] = lambda _tx, _rows: None,
    owner: Callable[[Connection, str, int], str | None] = lambda _tx, _type, _version: None,
) -> int:
    """Mark tasks whose deadline has passed before they ended. Nothing else changes. Returns how many.

    missed: is told of them in the same transaction. owner: of a version of a type, for the event of its tasks.
    """
    late = select(tasks).where(DEADLINE_OPEN, tasks.c.deadline_at <= now()).limit(BATCH)
    if not _any(db, late):
        return 0
    with db.write() as tx:
        rows = _locked_rows(tx, late)
        ledger.tell_before(tx, rows)
        ids = [row["id"] for row in rows]

        def said(row: RowMapping) -> dict[str, Any]:
            return {"deadline_at": time(row["deadline_at"]), "owner": owner(tx, row["type"], row["type_version"])}

        marked = _change(tx, ids, "deadline_missed", said, {"deadline_missed": True})
        missed(tx, marked)
        return len(marked)


def _any(db: Database, query: Select[Any]) -> bool:
    """A cheap look before a write transaction is begun."""
    with db.read() as connection:
        return connection.execute(query.limit(1)).first() is not None


def _first_ones(db: Database, lane: int) -> bool:
    """Whether somebody comes first in a lane."""
    return any(
        _any(
            db, select(tasks.c.id).where(READY, tasks.c.pool == pool, tasks.c.lane == lane, tasks.c.rank == RANK_FIRST)
        )
        for pool in Pool
    )


def _age(db: Database, ledger: Ledger, lane: int, ranks: Sequence[int], after: float, columns: dict[str, Any]) -> int:
    waited = (tasks.c.lane_since <= now(-after)) & (tasks.c.ready_at <= now(-after))
    # One query for each part of a line, so that each is read from the index in its order: a hundred thousand that have
    # not waited long enough cost nothing. What limits hold back is not in line; it is found by an index of its own.
    parts = [
        select(tasks.c.id, tasks.c.ready_at)
        .where(READY, tasks.c.pool == pool, tasks.c.lane == lane, tasks.c.rank == rank, waited)
        .order_by(tasks.c.ready_at, tasks.c.id)
        for pool in Pool
        for rank in ranks
    ]
    held = select(tasks.c.id, tasks.c.ready_at).where(HELD, tasks.c.lane == lane, tasks.c.rank.in_(ranks), waited)
    parts.append(held.order_by(tasks.c.ready_at, tasks.c.id))
    with db.read() as connection:
        rows = [row for part in parts for row in connection.execute(part.limit(BATCH)).all()]
    if not rows:
        return 0
    oldest = [row.id for row in sorted(rows, key=lambda row: (row.ready_at, row.id))[:BATCH]]
    with db.write() as tx:
        # The conditions once more, on the locked rows: some may have begun meanwhile.
        still = select(tasks.c.id).where(tasks.c.id.in_(oldest), WAITING, tasks.c.lane == lane, waited)
        return _lift(tx, ledger, _locked(tx, still), "aged", lane, columns)


def _lift(tx: Connection, ledger: Ledger, ids: Sequence[int], kind: str, lane: int, columns: dict[str, Any]) -> int:
    """Write where they stand from now on, with one event each."""
    to = columns.get("lane", lane)
    data = {"from": f"P{lane}", "to": f"P{to}"} | ({} if to != lane else {"first": True})
    rows = _change(tx, ids, kind, lambda _row: data, {"lane_since": now(), **columns})
    ledger.tell_places(tx, rows)
    return len(rows)


def _locked(tx: Connection, found: Select[Any]) -> list[int]:
    return [row["id"] for row in _locked_rows(tx, found)]


def _locked_rows(tx: Connection, found: Select[Any]) -> Sequence[RowMapping]:
    if tx.dialect.name == "postgresql":
        found = found.with_for_update(skip_locked=True)
    return tx.execute(found).mappings().all()


def _change(
    tx: Connection,
    ids: Sequence[int],
    kind: str,
    data: Callable[[RowMapping], dict[str, Any]],
    columns: dict[str, Any],
) -> Sequence[RowMapping]:
    """Write columns to these tasks, with one event each. data: of the event of a task."""
    if not ids:
        return []
    statement = (
        update(tasks)
        .where(tasks.c.id.in_(ids))
        .values(version=tasks.c.version + 1, event_seq=tasks.c.event_seq + 1, updated_at=now(), **columns)
        .returning(tasks)
    )
    rows = list(tx.execute(statement).mappings())
    tx.execute(insert(task_events), [event_row(row, kind, TIMER, data=data(row)) for row in rows])
    return rows
