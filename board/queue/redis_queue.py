"""Who goes next, asked of Redis: it proposes and the ledger decides. Without Redis the ledger alone is asked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import RowMapping, Select, select

from board.db.clock import now
from board.db.engine import Database
from board.queue.gate import Gate
from board.queue.ledger_queue import LedgerQueue, suspects
from board.queue.redis_feed import RedisFeed
from board.queue.redis_lines import RedisLines
from board.queue.wanted import Scope, Taken, Wanted
from board.redis_door import RedisAway
from board.tasks.ledger import Ledger
from board.tasks.states import Pool

# So often each claimer asks the ledger itself, whatever Redis says: an id that was lost waits no longer than this.
ASK_SECONDS = 2.0
# The database's time, and whether a suspect waits, hold for so long: at a thousand claims a second one more question
# for each would cost the database a fifth of its work.
LOOK_SECONDS = 0.25
# Ids that the ledger refuses are those of cancelled tasks and of such that somebody else has. After so many batches of
# nothing else the ledger is asked, which knows the right ones.
TRIES = 3


class _Look(NamedTuple):
    """moment: of the database, at `at` of this process's monotonic clock or a little before."""

    at: float
    moment: datetime
    suspect: bool

    @property
    def age(self) -> float:
        return time.monotonic() - self.at


class RedisQueue:
    """board.queue.wanted.Queue on the lanes in Redis. from_ledger: the queue that needs nothing but the database."""

    def __init__(
        self, db: Database, ledger: Ledger, gate: Gate, lines: RedisLines, feed: RedisFeed, from_ledger: LedgerQueue
    ) -> None:
        self._db, self._ledger, self._gate, self._lines, self._feed = db, ledger, gate, lines, feed
        self._from_ledger = from_ledger
        self._asked: dict[object, float] = {}  # when each kind of claimer has asked the ledger
        self._looks: dict[object, _Look] = {}

    def claim(self, wanted: Wanted) -> Taken:
        """As board.queue.wanted.Queue.claim says."""
        scope = wanted.scope
        # The lanes in Redis know no types: who wants only some would take out what others are to do.
        if not scope.narrow() and not self._must_ask(scope):
            try:
                if (rows := self._claim(wanted)) is not None:
                    return Taken(rows, again=None if rows else self._gate.opens_in(scope))
            except RedisAway:
                pass
        taken = self._from_ledger.claim(wanted)
        self._asked[_kind(scope)] = time.monotonic()
        if taken.rows:
            self._feed.taken(taken.rows)
        return taken

    def _must_ask(self, scope: Scope) -> bool:
        asked = self._asked.get(_kind(scope))
        return asked is None or time.monotonic() - asked >= ASK_SECONDS

    def _claim(self, wanted: Wanted) -> Sequence[RowMapping] | None:
        """What Redis proposes and the ledger grants; None when the ledger must be asked. Raises RedisAway."""
        scope = wanted.scope
        self._gate.tend(scope)
        look = self._look(scope)
        if look.suspect:
            return None
        for _ in range(TRIES):
            moment = look.moment + timedelta(seconds=look.age)
            lane_of = self._lines.take(scope.pool, scope.lanes, wanted.weights, wanted.slots, wanted.rest, moment)
            if lane_of is None:
                return None
            if not lane_of:
                return []
            with self._db.write() as tx:
                found = self._ledger.candidates_of(tx, list(lane_of), pool=scope.pool)
                # One that has changed its lane meanwhile stands in the other lane too, and has its turn there.
                found = [row for row in found if row["lane"] == lane_of[row["id"]]]
                admission = self._gate.admission(tx)
                admitted = admission.admit(found)
                for lane in sorted({row["lane"] for row in found if row["id"] in admission.refused}):
                    admission.hold(scope, lane)
                admission.close()
                rows = self._ledger.claim(tx, admitted, worker=wanted.worker, lease=wanted.lease, by=wanted.by)
                if rows and wanted.within is not None:
                    wanted.within(tx, rows)
                self._gate.look_soon(tx, set(admission.refused.values()))
            if rows:
                return rows
        return None

    def _look(self, scope: Scope) -> _Look:
        look = self._looks.get(_kind(scope))
        if look is None or look.age >= LOOK_SECONDS:
            with self._db.read() as connection:
                moment, suspect = connection.execute(_looking(scope.pool, tuple(scope.lanes))).one()
            look = self._looks[_kind(scope)] = _Look(time.monotonic(), moment, suspect)
        return look


def _kind(scope: Scope) -> object:
    return scope.pool, tuple(scope.lanes)


@lru_cache(maxsize=100)
def _looking(pool: Pool, lanes: tuple[int, ...]) -> Select[datetime, bool]:
    """Made once for each kind of claimer: making it takes longer than its execution."""
    return select(now(), suspects(Scope(pool, only_lanes=lanes)).exists())
