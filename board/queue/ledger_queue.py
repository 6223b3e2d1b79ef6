"""Who goes next, asked of the ledger itself: each lane gets its share, and a slot is kept free for P0."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, RowMapping, func, select

from board.db.clock import now
from board.queue.lanes import LANES
from board.tasks.claiming import claimable
from board.tasks.history import By
from board.tasks.ledger import Ledger
from board.tasks.models import tasks
from board.tasks.states import Pool


@dataclass(frozen=True, slots=True)
class Scope:
    """What one claimer may take. Empty or None: no limit."""

    pool: Pool = Pool.BOARD
    only_types: Sequence[str] | None = None
    without_types: Collection[str] = ()  # paused ones
    only_lanes: Sequence[int] | None = None

    @property
    def lanes(self) -> Sequence[int]:
        return LANES if self.only_lanes is None else self.only_lanes

    def narrow(self) -> list[ColumnElement[bool]]:
        found: list[ColumnElement[bool]] = []
        if self.only_types is not None:
            found.append(tasks.c.type.in_(self.only_types))
        if self.without_types:
            found.append(tasks.c.type.not_in(self.without_types))
        return found

    def ready(self, *, suspects: bool = False) -> list[ColumnElement[bool]]:
        return [*claimable(self.pool, suspects=suspects), *self.narrow()]


def suspects_wait(connection: Connection, scope: Scope, since: float = 0.0) -> bool:
    """Whether a task that must run alone is ready, for `since` seconds or longer."""
    query = select(tasks.c.id).where(tasks.c.lane.in_(scope.lanes), *scope.ready(suspects=True))
    query = query.where(tasks.c.ready_at <= now(-since))
    return connection.execute(query.limit(1)).scalar() is not None


def ready(connection: Connection, scope: Scope, limit: int) -> dict[int, int]:
    """How many tasks are ready in each lane, counted up to `limit`: all that a sharing-out needs to know."""
    counted: dict[int, int] = {}
    for lane in scope.lanes:
        some = select(tasks.c.id).where(tasks.c.lane == lane, *scope.ready()).limit(limit).subquery()
        if number := connection.execute(select(func.count()).select_from(some)).scalar_one():
            counted[lane] = number
    return counted


def take(
    tx: Connection,
    ledger: Ledger,
    scope: Scope,
    shares: Mapping[int, int],
    *,
    most: int,
    worker: str,
    lease: float,
    suspects: bool = False,
    by: By | None = None,
) -> list[RowMapping]:
    """Claim what each lane was given, urgent lanes first, together at most `most`, in one transaction.

    lease: seconds. suspects: only tasks that must run alone. by: who claims, left out the worker of that name.
    """
    taken: list[RowMapping] = []
    for lane in sorted(shares):
        if len(taken) >= most:
            break
        taken += ledger.claim(
            tx,
            lane=lane,
            limit=min(shares[lane], most - len(taken)),
            worker=worker,
            lease=lease,
            suspects=suspects,
            pool=scope.pool,
            narrow=scope.narrow(),
            by=by,
        )
    return taken
