"""Fills the lanes in Redis from the ledger: at the first start, after a loss, and when the two have drifted apart."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping

from sqlalchemy import Integer, Select, func, literal, select, tuple_

from board.db.engine import Database
from board.queue.lanes import LANES
from board.queue.redis_lines import Change, Place, RedisLines
from board.redis_door import RedisAway
from board.tasks.claiming import in_line
from board.tasks.models import tasks
from board.tasks.states import Pool

log = logging.getLogger(__name__)

# How often it is looked whether the lanes are complete. Until they are filled again workers ask the ledger.
LOOK_SECONDS = 2.0
# How often ids are counted here and there. What is missing in Redis waits no longer for that, since every worker asks
# the ledger every two seconds; what is too much in Redis costs only memory. Counting reads an index entry per task.
COUNT_SECONDS = 300.0
# Counted one after the other while work goes on, the two are never quite equal.
DRIFT_TASKS, DRIFT_SHARE = 100, 0.01
BATCH = 5000  # tasks read and written at once: some 20 ms for the database, and a few for Redis

_ORDER = (tasks.c.rank, tasks.c.ready_at, tasks.c.id)


class Rebuild:
    """For the leader; two at once do no harm. Without Redis it does nothing. every: seconds between two looks."""

    every = LOOK_SECONDS

    def __init__(self, db: Database, lines: RedisLines) -> None:
        self._db, self._lines = db, lines
        self._counted = time.monotonic()

    def look(self) -> bool:
        """Fill the lanes if they are not complete, or not right. Returns whether they were filled."""
        try:
            if self._lines.complete() and not self._drifted():
                return False
            self.fill()
        except RedisAway:  # said by its door
            return False
        self._counted = time.monotonic()
        return True

    def fill(self) -> int:
        """Empty the lanes and put in all that stands in line, urgent lanes first; how many. Raises RedisAway.

        Nothing is lost that processes put in meanwhile: what they had put in before the lanes were emptied had been
        committed, and is read here; what they put in after it stays.
        """
        began, filled = time.monotonic(), 0
        mark = self._lines.begin_filling()
        for lane in LANES:
            for pool in Pool:
                for places in self._waiting(pool, lane):
                    self._lines.write([Change(place.task, place.pool, place, False) for place in places])
                    filled += len(places)
        self._lines.finish_filling(mark)
        log.info("the queue in Redis was filled from the database: %d tasks, %.1f s", filled, time.monotonic() - began)
        return filled

    def _waiting(self, pool: Pool, lane: int) -> Iterator[list[Place]]:
        after: Place | None = None
        while True:
            with self._db.read() as connection:
                found = [Place._make(row) for row in connection.execute(waiting(pool, lane, after))]
            if found:
                yield found
            if len(found) < BATCH:
                return
            after = found[-1]

    def _drifted(self) -> bool:
        if time.monotonic() - self._counted < COUNT_SECONDS:
            return False
        self._counted = time.monotonic()
        there = self._lines.sizes()
        here = self._sizes()
        apart = sum(abs(there[place] - here.get(place, 0)) for place in there)
        return apart > max(DRIFT_TASKS, DRIFT_SHARE * sum(here.values()))

    def _sizes(self) -> Mapping[tuple[str, int], int]:
        query = (
            select(tasks.c.pool, tasks.c.lane, func.count())
            .where(*in_line(), tasks.c.suspect.is_(False))
            .group_by(tasks.c.pool, tasks.c.lane)
        )
        with self._db.read() as connection:
            return {(pool, lane): number for pool, lane, number in connection.execute(query)}


def waiting(pool: Pool, lane: int, after: Place | None) -> Select[tuple[int, str, int, int, object]]:
    """The places of the next BATCH of tasks that stand in a lane, due or not, in the order of the index ix_tasks_ready.

    Continued by comparing with the last one and not by OFFSET, so that each batch costs the same.
    """
    query = select(tasks.c.id, tasks.c.pool, tasks.c.lane, tasks.c.rank, tasks.c.ready_at).where(
        *in_line(), tasks.c.suspect.is_(False), tasks.c.pool == pool, tasks.c.lane == lane
    )
    if after is not None:
        last = (
            literal(after.rank, Integer),
            literal(after.ready_at, tasks.c.ready_at.type),
            literal(after.task, tasks.c.id.type),
        )
        query = query.where(tuple_(*_ORDER) > tuple_(*last))
    return query.order_by(*_ORDER).limit(BATCH)
