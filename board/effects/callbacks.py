"""Word to the caller: noted for a task's `callback_url` in the transaction of the move itself.

Only which task, and which of its events: what the call says is written out by board.effects.scribe, before the task can
change. So an end that somebody is told of costs hardly more than one that nobody hears of.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, select

from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue
from board.db.many import insert_many
from board.effects import announcing
from board.effects.models import operations, untold
from board.effects.operations import CALLBACK, SUBSCRIPTION
from board.tasks.followers import Moved
from board.tasks.states import AT_REST, TERMINAL, Status


class Callbacks:
    """A follower of the ledger."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def __call__(self, tx: Connection, moved: Moved) -> None:
        self.all(tx, [moved])

    def all(self, tx: Connection, moves: Sequence[Moved]) -> None:
        """The same for moves of many tasks, in one statement whatever their number."""
        insert_many(tx, untold, [_note(moved) for moved in moves if self._tells(tx, moved)])

    def _tells(self, tx: Connection, moved: Moved) -> bool:
        task = moved.task
        if not task["callback_url"] or moved.source is moved.status or moved.status not in AT_REST:
            return False
        return _told(self._catalogue.version(tx, task["type"], task["type_version"]).spec, moved.status)


def _note(moved: Moved) -> dict[str, Any]:
    # A rejection can be undone for a while.
    grace = (moved.data or {}).get("leaves_in")
    due = moved.task["updated_at"] + timedelta(seconds=float(grace)) if grace else None
    return {"task": moved.task["id"], "seq": moved.task["event_seq"], "due_at": due}


def _told(spec: TypeSpec, status: Status) -> bool:
    """Whether the caller hears of it. A flow that waits is resumed instead of told `done`, and never waits in vain."""
    if spec.resumes and status in TERMINAL:
        return status is not Status.DONE
    return status in spec.callback.events


def sent_since(connection: Connection, task: int, moment: datetime) -> bool:
    """Whether any word about the task has left the house since then."""
    query = select(operations.c.id).where(
        operations.c.task == task,
        operations.c.kind == CALLBACK,
        operations.c.created_at >= moment,
        operations.c.tries > 0,
    )
    return connection.execute(query.limit(1)).scalar() is not None


def take_back(tx: Connection, task: int, moment: datetime) -> None:
    """The decision that reserved them was undone; nothing of them has left the house. Nobody hears of it."""
    tx.execute(delete(untold).where(untold.c.task == task))
    announcing.take_back(tx, task, moment)
    tx.execute(
        delete(operations).where(
            operations.c.task == task,
            operations.c.kind.in_([CALLBACK, SUBSCRIPTION]),
            operations.c.created_at >= moment,
            operations.c.tries == 0,
        )
    )
