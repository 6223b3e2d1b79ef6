"""Finding a task on behalf of somebody: what he may not see does not exist for him."""

from __future__ import annotations

from sqlalchemy import Connection, RowMapping

from board.access.rights import Act, Actor
from board.tasks.ids import BadTaskId, canonical
from board.tasks.ledger import find, retired


class NoSuchTask(Exception):
    """There is none, or this actor may not know of it."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"There is no task “{task_id[:200]}”.")


class Archived(NoSuchTask):
    """There was one; it is in the archive's file of that day."""

    def __init__(self, row: RowMapping) -> None:
        self.status, self.day = row["status"], row["retired_at"].date()
        self.file = f"archive/{self.day}.jsonl.gz"
        Exception.__init__(
            self,
            f"Task “{row['task_id']}” was archived on {self.day}; it was {self.status}. All of it stands in the file "
            f"{self.file} of the board's data folder.",
        )


def missing(connection: Connection, task_id: str) -> NoSuchTask:
    """Why there is no task with this ID, which is in its stored form."""
    row = retired(connection, task_id)
    return NoSuchTask(task_id) if row is None else Archived(row)


def visible(connection: Connection, actor: Actor, task_id: str, act: Act = Act.READ) -> RowMapping:
    """The task's row, for an act that this actor may do with it. Raises NoSuchTask, Archived, Forbidden."""
    try:
        stored = canonical(task_id)
    except BadTaskId:
        raise NoSuchTask(task_id) from None
    row = find(connection, stored)
    if row is None:
        # Whose it was is not known any more; who may put tasks in learns from that, too, that the ID was used.
        raise missing(connection, stored) if actor.may(Act.READ, own=True) else NoSuchTask(task_id)
    own = row["requester"] == actor.identity
    if not actor.may(Act.READ, own=own):
        raise NoSuchTask(task_id)
    actor.require(act, own=own)
    return row
