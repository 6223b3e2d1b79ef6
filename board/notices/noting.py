"""What people are to hear of, noted in the transaction in which it happens: one narrow row, and none where no route
asks for it. Whom it concerns, and in which words, is found out later by board.notices.gather.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from board.db.clock import now
from board.db.many import insert_many
from board.notices.kinds import Kind
from board.notices.models import noted, routes
from board.tasks.followers import Moved
from board.tasks.models import tasks
from board.tasks.states import Move, Status

KNOWN_SECONDS = 1.0  # a new route is known to every process after so long


class Wanted:
    """The kinds that any route asks for, as this process knows them."""

    def __init__(self) -> None:
        self._kinds: frozenset[str] = frozenset()
        self._until = 0.0

    def kinds(self, tx: Connection) -> frozenset[str]:
        if time.monotonic() >= self._until:
            until = time.monotonic() + KNOWN_SECONDS
            self._kinds = wanted(tx)
            self._until = until
        return self._kinds


class Noting:
    """A follower of the ledger."""

    def __init__(self) -> None:
        self._wanted = Wanted()

    def __call__(self, tx: Connection, moved: Moved) -> None:
        self.all(tx, [moved])

    def all(self, tx: Connection, moves: Sequence[Moved]) -> None:
        found = [(kind, moved.task) for moved in moves if (kind := kind_of(moved)) is not None]
        if found:  # a task that simply gets done asks nothing of the database
            self.of_tasks(tx, found)

    def of_tasks(self, tx: Connection, found: Iterable[tuple[Kind, RowMapping]]) -> None:
        """Rows of `tasks` after what happened to them."""
        kinds = self._wanted.kinds(tx)
        rows = [_row(kind, task) for kind, task in found if kind in kinds]
        if rows:
            insert_many(tx, noted, rows)

    def missed(self, tx: Connection, rows: Sequence[RowMapping]) -> None:
        """Tasks whose deadline has passed."""
        self.of_tasks(tx, [(Kind.DEADLINE_MISSED, row) for row in rows])


def kind_of(moved: Moved) -> Kind | None:
    if moved.move is Move.CREATE:
        return Kind.P0_ARRIVED if moved.task["priority"] == 0 else None
    if moved.move is Move.ASK_UNKNOWN:
        return Kind.UNKNOWN_OUTCOME
    if moved.move is Move.ASK:
        return Kind.REVIEW_ASKED
    return Kind.FAILED if moved.status is Status.FAILED else None


def _row(kind: Kind, task: RowMapping) -> dict[str, Any]:
    key = f"{kind}:{task['task_id']}:{task['event_seq']}"
    return {"kind": kind, "key": key, "task": task["id"], "audience": None, "data": None, "at": task["updated_at"]}


def note(tx: Connection, kind: Kind, key: str, data: dict[str, Any], audience: list[str] | None = None) -> None:
    """Note what is about no task. audience: whom it concerns; None: everybody who asks for this kind."""
    values = {"kind": kind, "key": key, "task": None, "audience": audience, "data": data}
    tx.execute(noted.insert().values(at=now(), **values))


def note_of(tx: Connection, kind: Kind, task: int, audience: Sequence[str]) -> None:
    """Note what has just been written into the history of a task (an internal id), for those whom it names,
    such as `user:li@example.org`, `sales` or `group:sales`. Rare: it asks each time whether any route wants it."""
    if kind not in wanted(tx):
        return
    row = tx.execute(select(tasks.c.task_id, tasks.c.event_seq).where(tasks.c.id == task)).one()
    names = [it.removeprefix("user:").removeprefix("group:") for it in audience]
    values = {"kind": kind, "key": f"{kind}:{row.task_id}:{row.event_seq}", "task": task}
    tx.execute(noted.insert().values(at=now(), audience=names or None, data=None, **values))


def wanted(tx: Connection) -> frozenset[str]:
    """The kinds that any route asks for."""
    return frozenset(kind for about in tx.execute(select(routes.c.about)).scalars() for kind in about)
