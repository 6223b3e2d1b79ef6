"""Whose task it becomes where nobody has it: that of the owner whom its type names, a person or a group."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, RowMapping, select

from board.access import users
from board.access.rights import Role
from board.catalogue.store import Catalogue
from board.tasks.followers import Moved
from board.tasks.history import TIMER
from board.tasks.ledger import Ledger
from board.tasks.models import tasks
from board.tasks.states import Move

# What has failed, or ended in a way that nobody can tell: from here on it takes a person.
STUCK = (Move.FAIL, Move.GIVE_UP, Move.EXPIRE_FAILED, Move.ASK_UNKNOWN)


class Owners:
    """A follower of the ledger, for moves of STUCK: a task that nobody has is given to the owner of its type."""

    def __init__(self, ledger: Ledger, catalogue: Catalogue) -> None:
        self._ledger, self._catalogue = ledger, catalogue

    def __call__(self, tx: Connection, moved: Moved) -> None:
        owner = owner_of(tx, self._catalogue, moved.task)
        if owner is None or moved.task["assignee"] is not None:
            return
        # As it stands now: a follower before this one may have written to the row.
        task = tx.execute(select(tasks).where(tasks.c.id == moved.task["id"])).mappings().one()
        give(tx, self._ledger, task, owner)


def give(tx: Connection, ledger: Ledger, task: RowMapping, owner: str) -> None:
    """Assign a task, of a locked row, by the board itself; nothing happens where it is assigned so already."""
    if task["assignee"] != owner:
        details = {"assignee": {"from": task["assignee"], "to": owner}}
        ledger.edit(tx, task, TIMER, changes={"assignee": owner}, data={}, details=details, kind="assigned")


def owner_of(connection: Connection, catalogue: Catalogue, task: RowMapping) -> str | None:
    """The owner of the type, in the version that the task has."""
    return catalogue.version(connection, task["type"], task["type_version"]).spec.owner


def who_is_told(connection: Connection, owner: str | None) -> Sequence[str]:
    """The owner; where a type names none, every owner of the board, by address."""
    if owner is not None:
        return [owner]
    return [it.email for it in users.list_users(connection) if it.role == Role.OWNER and not it.disabled]
