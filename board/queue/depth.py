"""How much waits and how long: what the queue's page, its API and the metrics show."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, case, func, select

from board.db.clock import now, read_now
from board.db.types import UtcTime
from board.queue.lanes import LANES
from board.queue.live import QueueRules
from board.tasks.models import HELD, READY, RUNNING, WAITING, task_events, tasks
from board.tasks.states import Pool, Status
from board.tasks.view import time

RATE_MINUTES = 5  # throughput is counted over so long: short enough to follow, long enough not to jump


# Since when a task waits. Its place in line may be earlier: small ones stand before big ones (`order_by: size`).
_WAITS_SINCE = case((tasks.c.ready_at < tasks.c.created_at, tasks.c.created_at), else_=tasks.c.ready_at)


def snapshot(connection: Connection, rules: QueueRules) -> dict[str, Any]:
    """Depth per lane and status, the oldest ready task of each lane, and tasks started and ended per minute.

    ready: could begin now. held: kept back by limits. later: for its time, a retry's or a due one.
    """
    moment = read_now(connection)
    held = {int(lane): int(number) for lane, number in connection.execute(_HELD)}
    lanes = []
    for lane in LANES:
        waits = (READY, tasks.c.lane == lane, tasks.c.ready_at <= now())
        query = select(func.count(), func.min(_WAITS_SINCE, type_=UtcTime())).where(*waits)
        number, oldest = connection.execute(query).one()
        later = select(func.count()).where(READY, tasks.c.lane == lane, tasks.c.ready_at > now())
        seconds = (moment - oldest).total_seconds() if oldest is not None else None
        lanes.append(
            {
                "lane": f"P{lane}",
                "ready": number,
                "held": held.get(lane, 0),
                "later": connection.execute(later).scalar_one(),
                "oldest_ready_at": time(oldest),
                "oldest_wait_seconds": None if seconds is None else round(seconds, 1),
            }
        )
    outside = select(func.count()).where(WAITING, tasks.c.pool == Pool.OUTSIDE)
    return {
        "lanes": lanes,
        "outside": connection.execute(outside).scalar_one(),
        "status": _open_counts(connection),
        "per_minute": _rates(connection),
        "weights": rules.weights,
        "windows": [window.model_dump() for window in rules.windows],
        "paused": rules.paused,
        "paused_types": rules.paused_types,
        "at": time(moment),
    }


_HELD = select(tasks.c.lane, func.count()).where(HELD).group_by(tasks.c.lane)


def _open_counts(connection: Connection) -> dict[str, int]:
    """Tasks that have not ended, by status: the ended ones may be millions and are counted by the reports."""
    counted = dict.fromkeys((Status.PENDING, Status.RUNNING, Status.NEEDS_REVIEW, Status.RETRYING), 0)
    for condition in (WAITING, RUNNING, tasks.c.status == Status.NEEDS_REVIEW):
        query = select(tasks.c.status, func.count()).where(condition).group_by(tasks.c.status)
        counted |= {Status(status): number for status, number in connection.execute(query)}
    return {str(status): number for status, number in counted.items()}


def _rates(connection: Connection) -> dict[str, float]:
    begin = now(-60.0 * RATE_MINUTES)
    query = (
        select(task_events.c.to_status, func.count())
        .where(task_events.c.at >= begin, task_events.c.to_status.in_([Status.RUNNING, Status.DONE, Status.FAILED]))
        .group_by(task_events.c.to_status)
    )
    counted = {str(status): int(number) for status, number in connection.execute(query)}
    return {
        name: round(counted.get(status, 0) / RATE_MINUTES, 2)
        for name, status in (("started", "running"), ("done", "done"), ("failed", "failed"))
    }
