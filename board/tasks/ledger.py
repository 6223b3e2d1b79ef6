"""The only writer of task rows. Every change of a status is one guarded statement and one event, in one transaction.

Guards: a worker's statement repeats the lease token it was given; a person's repeats the version and status that were
read under the row's lock. A statement that hits no row means somebody was faster: nothing is written, None comes back.
Followers (outbox, review) run inside the same transaction with what has just happened.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, delete, insert, select, update

from board.db.clock import now
from board.db.many import among, listed
from board.tasks.claiming import Lease
from board.tasks.followers import Follower, Moved
from board.tasks.history import By, event_row, record
from board.tasks.making import write_new
from board.tasks.models import retired_ids, task_data, task_events, tasks
from board.tasks.moving import Change, Moving
from board.tasks.states import Move, Phase, Status, after

__all__ = ["Follower", "Lease", "Ledger", "Moved", "Stale", "find", "retired"]


class Stale(Exception):
    """The row changed since it was read (another version), or the lease was lost."""


class Ledger(Moving):
    """Claims and leases are in board.tasks.claiming, the statements of moves in board.tasks.moving."""

    # -- a task is made -------------------------------------------------------------------------------------------

    def create(self, tx: Connection, new: Sequence[dict[str, Any]], by: By) -> dict[str, int]:
        """Insert new tasks; IDs that exist or were archived are left alone, also under racing writers.

        new: rows with the columns of `tasks` that a caller decides, and under "data" those of `task_data`. ahead: so
        many seconds before its time it takes its place in line, where it is ready at once. Returns the internal id of
        each task that was made, by task_id; what is missing there existed before.
        """
        if not new:
            return {}
        made = {row["task_id"]: row for row in write_new(tx, new, by)}
        # Asked after the insert: before it, a task could be archived between the two statements and be made anew.
        if made and (used := retired_among(tx, made)):
            tx.execute(delete(tasks).where(tasks.c.id.in_([made.pop(task_id)["id"] for task_id in used])))
        for row in made.values():
            self._follow(tx, Moved(Move.CREATE, row, None, by, None, None))
        return {task_id: row["id"] for task_id, row in made.items()}

    # -- moves ----------------------------------------------------------------------------------------------------

    def lock(self, tx: Connection, task: int) -> RowMapping:
        """The task's row, locked until the transaction ends (SQLite holds its one write lock anyway).

        Whoever changes a task at rest, or anything that belongs to it, begins with this.
        """
        statement = select(tasks).where(tasks.c.id == task)
        if tx.dialect.name == "postgresql":
            statement = statement.with_for_update()
        row = tx.execute(statement).mappings().one()
        self.tell_before(tx, [row])
        return row

    def move(
        self,
        tx: Connection,
        row: RowMapping,
        move: Move,
        by: By,
        *,
        changes: dict[str, Any] | None = None,
        data: dict[str, Any] | None = None,
        note: str | None = None,
        details: dict[str, Any] | None = None,
        guards: Sequence[ColumnElement[bool]] = (),
    ) -> Moved:
        """A move by a person, caller, timer or sweep, from the row as it was read in this transaction.

        Raises IllegalMove when the move does not start here, Stale when the row changed meanwhile.
        """
        after(move, Status(row["status"]), Phase(row["phase"]))
        every = [tasks.c.version == row["version"], *guards]
        change = Change(by, changes or {}, data, note, details)
        moved = self._move(tx, row["id"], move, Status(row["status"]), every, change)
        if moved is None:
            raise Stale
        return moved

    def cancel(self, tx: Connection, row: RowMapping, by: By, reason: str | None) -> Moved | None:
        """Cancel at once, or ask the running worker to stop (then None). A repeated cancel changes nothing."""
        if row["status"] == Status.RUNNING:
            if not row["cancel_requested"]:
                tx.execute(update(tasks).where(tasks.c.id == row["id"]).values(cancel_requested=True))
                record(tx, row["id"], "cancel_requested", by, note=reason)
            return None
        return self.move(tx, row, Move.CANCEL, by, note=reason)

    def edit(
        self,
        tx: Connection,
        row: RowMapping,
        by: By,
        *,
        changes: dict[str, Any],
        data: dict[str, Any],
        details: dict[str, Any] | None,
        kind: str = "edited",
        note: str | None = None,
    ) -> RowMapping:
        """Change fields of a task without moving it. Raises Stale when the row changed since it was read.

        kind, note, details: of the event.
        """
        edited = (
            tx.execute(
                update(tasks)
                .where(tasks.c.id == row["id"], tasks.c.version == row["version"], tasks.c.status == row["status"])
                .values(version=tasks.c.version + 1, event_seq=tasks.c.event_seq + 1, updated_at=now(), **changes)
                .returning(tasks)
            )
            .mappings()
            .first()
        )
        if edited is None:
            raise Stale
        if data:
            tx.execute(update(task_data).where(task_data.c.task == row["id"]).values(**data))
        tx.execute(insert(task_events), [event_row(edited, kind, by, note=note, data=details)])
        if {"lane", "ready_at", "held_by"} & changes.keys():
            self.tell_places(tx, [edited])
        return edited


def find(connection: Connection, task_id: str) -> RowMapping | None:
    """The row of `tasks` with this ID in its stored form."""
    return connection.execute(select(tasks).where(tasks.c.task_id == task_id)).mappings().first()


def find_all(connection: Connection, task_ids: Collection[str]) -> dict[str, RowMapping]:
    """The rows of those that are there, by their IDs."""
    rows = connection.execute(select(tasks).where(tasks.c.task_id.in_(task_ids))).mappings()
    return {row["task_id"]: row for row in rows.all()}


def retired(connection: Connection, task_id: str) -> RowMapping | None:
    """What is left of a task that was archived: its ID, last status, and when that was."""
    return connection.execute(select(retired_ids).where(retired_ids.c.task_id == task_id)).mappings().first()


def retired_among(connection: Connection, task_ids: Collection[str]) -> list[str]:
    """Those of the IDs whose tasks were archived."""
    dialect = connection.dialect.name
    return list(connection.execute(_retired_among(dialect), listed(dialect, task_ids)).scalars())


@lru_cache(maxsize=2)
def _retired_among(dialect: str) -> Select[Any]:
    return select(retired_ids.c.task_id).where(among(dialect, retired_ids.c.task_id))
