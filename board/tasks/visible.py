"""Finding a task on behalf of somebody: what he may not see does not exist for him."""

from __future__ import annotations

from sqlalchemy import Connection, RowMapping

from board.access.rights import Act, Actor
from board.tasks.ids import BadTaskId, canonical
from board.tasks.ledger import find


class NoSuchTask(Exception):
    """There is none, or this actor may not know of it."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"There is no task “{task_id[:200]}”.")


def visible(connection: Connection, actor: Actor, task_id: str, act: Act = Act.READ) -> RowMapping:
    """The task's row, for an act that this actor may do with it. Raises NoSuchTask, Forbidden."""
    try:
        row = find(connection, canonical(task_id))
    except BadTaskId:
        row = None
    if row is None:
        raise NoSuchTask(task_id)
    own = row["requester"] == actor.identity
    if not actor.may(Act.READ, own=own):
        raise NoSuchTask(task_id)
    actor.require(act, own=own)
    return row
