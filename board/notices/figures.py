"""What the rules look at, read once a minute: each figure by what it is of, in a few queries that stay cheap.

With 100,000 waiting tasks the first query reads the part of an index that holds them; none reads finished ones.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, case, func, select, text

from board.db.clock import now, read_now
from board.db.types import UtcTime
from board.effects import breaker
from board.notices.rules import seconds
from board.queue import live
from board.review.models import reviews
from board.tasks.models import FAILED, READY, tasks
from board.tasks.states import Pool
from board.worker.models import workers

# (name of the rule, what it is of, value). What is not in it counts as good.
Figure = tuple[str, str, float]
OPEN_REVIEW = text("reviews.status = 'open'")
WEEK_HOURS = 168.0
ENOUGH_FAILED = 5  # in an hour; fewer are no storm, however seldom they are
_WAITS_SINCE = case((tasks.c.ready_at < tasks.c.created_at, tasks.c.created_at), else_=tasks.c.ready_at)
_WAITING = (
    select(tasks.c.pool, tasks.c.lane, func.count(), func.min(_WAITS_SINCE, type_=UtcTime()))
    .where(READY, tasks.c.ready_at <= now())
    .group_by(tasks.c.pool, tasks.c.lane)
)


def measure(connection: Connection, data_dir: Path) -> list[Figure]:
    moment = read_now(connection)
    return [
        *_queue(connection, moment),
        *_failed(connection),
        *_workers(connection, moment),
        *_reviews(connection),
        *_disk(data_dir),
        *((("circuit_open", row["connection"], 1.0)) for row in breaker.read(connection) if _shut(row, moment)),
        *_clock(connection),
    ]


def _shut(row: object, moment: datetime) -> bool:
    return breaker.is_shut(row, moment)  # type: ignore[arg-type]


def _queue(connection: Connection, moment: datetime) -> Iterator[Figure]:
    rows = connection.execute(_WAITING).all()
    yield "queue_depth", "", float(sum(row[2] for row in rows))
    oldest: dict[int, datetime] = {}
    for _, lane, _, since in rows:
        oldest[lane] = min(since, oldest.get(lane, since))
    for lane, since in sorted(oldest.items()):
        yield "oldest_ready", f"P{lane}", seconds(moment, since)
    mine = [row[3] for row in rows if row[0] != Pool.OUTSIDE]  # what the board's own workers should take
    if mine and not live.read(connection).paused:
        query = select(func.max(workers.c.claimed_at, type_=UtcTime()), func.max(workers.c.started_at, type_=UtcTime()))
        claimed, started = connection.execute(query).one()
        last = max((it for it in (claimed, started) if it is not None), default=None)
        waits = seconds(moment, min(mine))
        yield "no_claim", "", waits if last is None else min(waits, seconds(moment, last))


def _failed(connection: Connection) -> Iterator[Figure]:
    hour = func.sum(case((tasks.c.finished_at >= now(-3600.0), 1), else_=0))
    query = select(func.count(), hour).where(FAILED, tasks.c.finished_at >= now(-3600.0 * (WEEK_HOURS + 1)))
    number, last = connection.execute(query).one()
    last = int(last or 0)
    usual = max((number - last) / WEEK_HOURS, 1.0)  # with less than one an hour, five are a storm
    yield "failed_rate", "", round(last / usual, 1) if last >= ENOUGH_FAILED else 0.0


def _workers(connection: Connection, moment: datetime) -> Iterator[Figure]:
    query = select(workers.c.name, workers.c.seen_at).where(workers.c.stopped_at.is_(None))
    for row in connection.execute(query):
        yield "worker_silent", row.name, seconds(moment, row.seen_at)


def _reviews(connection: Connection) -> Iterator[Figure]:
    unknown = select(func.count()).select_from(reviews).where(OPEN_REVIEW, reviews.c.reason == "unknown_outcome")
    yield "unknown_outcomes", "", float(connection.execute(unknown).scalar_one())
    overdue = select(func.count()).select_from(reviews).where(OPEN_REVIEW, reviews.c.due_at < now())
    yield "reviews_overdue", "", float(connection.execute(overdue).scalar_one())


def _disk(data_dir: Path) -> Iterator[Figure]:
    try:
        usage = shutil.disk_usage(data_dir)
    except OSError:  # the doctor and /readyz say so
        return
    yield "disk_low", "", round(100.0 * (1 - usage.free / max(usage.total, 1)), 1)


def _clock(connection: Connection) -> Iterator[Figure]:
    """Against the database's machine; SQLite has the same clock."""
    if connection.dialect.name == "postgresql":
        there: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
        yield "clock_off", "", round(abs(there.timestamp() - time.time()), 1)
