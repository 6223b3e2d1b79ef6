"""Who goes next, asked of the ledger itself: strictly by priority, then by age."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, RowMapping, select

from board.db.clock import now
from board.tasks.ledger import Ledger
from board.tasks.models import READY, SUSPECT, tasks
from board.tasks.states import Phase

LANES = (0, 1, 2, 3)


def waiting(
    connection: Connection,
    *,
    suspects: bool,
    since: float = 0.0,
    only_types: Sequence[str] | None = None,
    only_lanes: Sequence[int] | None = None,
) -> bool:
    """Whether work for this worker is ready, for `since` seconds or longer: a cheap look before a write transaction."""
    query = select(tasks.c.id).where(READY, tasks.c.ready_at <= now(-since), tasks.c.unmet_needs == 0)
    query = query.where(tasks.c.lane.in_(LANES if only_lanes is None else only_lanes))
    query = query.where((tasks.c.phase == Phase.WORK) | tasks.c.has_action)  # the rest only waits for its grace time
    if suspects:
        query = query.where(SUSPECT)
    if only_types is not None:
        query = query.where(tasks.c.type.in_(only_types))
    return connection.execute(query.limit(1)).scalar() is not None


def take(
    tx: Connection,
    ledger: Ledger,
    *,
    slots: int,
    worker: str,
    lease: float,
    suspects: bool = False,
    only_types: Sequence[str] | None = None,
    only_lanes: Sequence[int] | None = None,
) -> list[RowMapping]:
    """Claim up to `slots` tasks, urgent lanes first, in one transaction."""
    taken: list[RowMapping] = []
    for lane in only_lanes if only_lanes is not None else LANES:
        if len(taken) < slots:
            taken += ledger.claim(
                tx,
                lane=lane,
                limit=slots - len(taken),
                worker=worker,
                lease=lease,
                suspects=suspects,
                only_types=only_types,
            )
    return taken
