"""What happens to tasks, noted for subscriptions in the transaction of the move itself.

Nothing is asked or written where nobody has subscribed. What a body says is how the task is at this very move; for whom
it is, and in which order it leaves, is found out by board.effects.fan_out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete

from board.db.engine import after_commit
from board.db.many import insert_many
from board.effects.models import announcements
from board.effects.scribe import DocumentsOfMany, envelope
from board.effects.subscriptions import Event, Wanted
from board.tasks.followers import Moved
from board.tasks.states import AT_REST, Move, Status
from board.tasks.view import time

# A person's word on a review, or the clock's in place of it.
_DECISIONS = frozenset(
    {
        Move.APPROVE,
        Move.ANSWER,
        Move.REVISE,
        Move.REJECT,
        Move.HAPPENED,
        Move.HAPPENED_GO_ON,
        Move.SEND_AGAIN,
        Move.DROP,
    }
)


class Announcing:
    """A follower of the ledger. documents: makes task objects of the contract; wake: tells those who send."""

    def __init__(self, documents: DocumentsOfMany, wake: Callable[[], None]) -> None:
        self._wanted, self._documents, self._wake = Wanted(), documents, wake

    def __call__(self, tx: Connection, moved: Moved) -> None:
        self.all(tx, [moved])

    def all(self, tx: Connection, moves: Sequence[Moved]) -> None:
        """The same for moves of many tasks, in a few statements whatever their number."""
        if not (wanted := self._wanted.events(tx)):
            return
        heard = [(moved, event) for moved in moves for event in events_of(moved) if _wants(wanted, moved, event)]
        if not heard:
            return
        tasks = {moved.task["id"]: moved.task for moved, _ in heard}
        documents = dict(zip(tasks, self._documents(tx, list(tasks.values())), strict=True))
        insert_many(tx, announcements, [_row(it, event, documents[it.task["id"]]) for it, event in heard])
        after_commit(tx, self._wake)


def events_of(moved: Moved) -> list[Event]:
    """What a move is called by those who have subscribed; mostly one event, and none for a retry."""
    task, found = moved.task, []
    if moved.move is Move.CREATE:
        found.append(Event.CREATED)
    # Begun for the first time: neither tried again, nor sent back by a person.
    if moved.status is Status.RUNNING and task["started_at"] == task["updated_at"]:
        found.append(Event.STARTED)
    if moved.move in _DECISIONS:
        found.append(Event.DECIDED)
    if moved.status in AT_REST and moved.source is not moved.status:
        found.append(Event(f"task.{moved.status}"))
    return found


def _wants(wanted: Mapping[str, frozenset[str] | None], moved: Moved, event: Event) -> bool:
    types = wanted.get(event, frozenset())
    return types is None or moved.task["type"] in types


def _row(moved: Moved, event: Event, document: dict[str, Any]) -> dict[str, Any]:
    task, seq = moved.task, moved.task["event_seq"]
    return {
        "event": event,
        "type": task["type"],
        "task": task["id"],
        "task_id": task["task_id"],
        "name": f"{task['task_id']}:{seq}",
        "body": envelope(event, seq, document, time(task["updated_at"])).decode(),
        "at": task["updated_at"],
        "due_at": _due(moved),
    }


def _due(moved: Moved) -> datetime:
    """A decision can be undone for a while; nobody outside hears of it before."""
    task = moved.task
    at: datetime = task["updated_at"]
    ready: datetime | None = task["ready_at"]
    if moved.move is Move.APPROVE and ready is not None:
        return max(at, ready)
    return at + timedelta(seconds=float((moved.data or {}).get("leaves_in") or 0.0))


def take_back(tx: Connection, task: int, moment: datetime) -> None:
    """What was announced of the task since then has not happened: a decision was undone."""
    tx.execute(delete(announcements).where(announcements.c.task == task, announcements.c.at >= moment))
