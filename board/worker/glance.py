"""The one question that a worker asks each second: is there anything to do, and has anything changed?

Most seconds there is not. To ask for each thing by itself took an idle worker ten questions a second.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, func, literal, or_, select

from board.catalogue.models import task_types
from board.db.clock import now
from board.db.engine import Database
from board.effects.models import breakers
from board.queue import budget, held, live
from board.queue.ledger_queue import suspects
from board.queue.wanted import Scope
from board.tasks.models import tasks
from board.tasks.states import Pool


@dataclass(frozen=True, slots=True)
class Seen:
    """moment: the database's time. work: whether a task can perhaps be claimed. due: the names of what has come true.

    rules: another value whenever what is read for claims was changed. holds: whether a connection fails, or a type has
    used tokens, which changes by time too.
    """

    moment: datetime
    work: bool
    rules: Hashable
    holds: bool
    due: Sequence[str]


class Glance:
    """signs: by name, what says in SQL that something else is due. Each costs a look into an index."""

    def __init__(
        self,
        db: Database,
        pools: Sequence[Pool],
        only_types: Sequence[str] | None,
        only_lanes: Sequence[int] | None,
        signs: Mapping[str, ColumnElement[bool]],
    ) -> None:
        self._db, self._signs = db, tuple(signs)
        scopes = [Scope(pool, only_types=only_types, only_lanes=only_lanes) for pool in pools]
        types = select(func.count()).select_from(task_types).scalar_subquery()  # no version of a type ever goes
        failing = select(breakers.c.connection).exists()
        # Made once: making it takes longer than its execution.
        self._statement = select(
            or_(held.any_at_all(), *(condition for scope in scopes for condition in _work(scope))),
            now(),
            live.changed(),
            types,
            or_(failing, budget.any_at_all()),
            *(signs[name] for name in self._signs),
        )

    def look(self) -> Seen:
        with self._db.read() as connection:
            work, moment, changed, types, holds, *due = connection.execute(self._statement).one()
        found = [name for name, holds_true in zip(self._signs, due, strict=True) if holds_true]
        return Seen(moment, bool(work), (changed, types), bool(holds), found)


def _work(scope: Scope) -> list[ColumnElement[bool]]:
    """Lane by lane, so that each is one step into ix_tasks_ready, however long the lanes are."""
    ready = [select(literal(1)).where(tasks.c.lane == lane, *scope.ready()).exists() for lane in scope.lanes]
    return [*ready, suspects(scope).exists()]
