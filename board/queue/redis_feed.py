"""Feeds the lanes in Redis with what has become ready here, after the commit and beside it.

A thread of its own writes, so that no request waits for Redis, and what comes in a burst goes out in one round trip.
What cannot be written is dropped: then the lanes are spoiled, and filled anew from the ledger once Redis is back.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial

from sqlalchemy import Connection, RowMapping

from board.db.engine import after_commit
from board.queue.redis_lines import Change, RedisLines, place_of
from board.redis_door import RedisAway
from board.tasks.claiming import stands_in_line
from board.tasks.followers import Moved
from board.tasks.states import READY, Move

# A burst is cut so that no command keeps the server busy for more than a few milliseconds.
BATCH = 2000
FLUSH_SECONDS = 1.0  # at a stop the last changes may take so long; what is lost then the ledger finds


class RedisFeed:
    """One per process. Its thread begins with the first change; `close()` at the end.

    fed: called after each writing, good or not, with the pools in which something has got a place: now is the moment
    to wake who waits for work.
    """

    def __init__(self, lines: RedisLines) -> None:
        self.fed: Callable[[Collection[str]], None] = lambda _: None
        self._lines = lines
        self._waiting: deque[Change] = deque()
        self._wanted = threading.Event()
        self._closing = False
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def follow(self, tx: Connection, moved: Moved) -> None:
        """A follower of the ledger: a move has brought a task into line, or out of it."""
        if stands_in_line(moved.task):
            self.placed(tx, [moved.task], clear=False)
        elif moved.source in READY and moved.move is not Move.CLAIM:  # who claims has taken it out
            change = Change(moved.task["id"], moved.task["pool"], None, True)
            after_commit(tx, partial(self._add, [change]))

    def placed(self, tx: Connection, rows: Sequence[RowMapping], *, clear: bool = True) -> None:
        """These tasks have another place in line than before, or none any more; or (not clear) a place at all."""
        changes = [
            Change(row["id"], row["pool"], place_of(row) if stands_in_line(row) else None, clear)
            for row in rows
            if row["status"] in READY
        ]
        if changes:
            after_commit(tx, partial(self._add, changes))

    def taken(self, rows: Iterable[RowMapping]) -> None:
        """These were claimed past Redis."""
        self._add([Change(row["id"], row["pool"], None, True) for row in rows])

    def close(self) -> None:
        """Write what is left, and end."""
        self._closing = True
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(FLUSH_SECONDS)

    def _add(self, changes: Sequence[Change]) -> None:
        self._waiting.extend(changes)
        if self._thread is None:
            self._begin()
        self._wanted.set()

    def _begin(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep_writing, name="redis-feed", daemon=True)
                self._thread.start()

    def _keep_writing(self) -> None:
        last = False
        while not last:
            self._wanted.wait()
            self._wanted.clear()
            last = self._closing
            while self._waiting:
                changes = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
                with suppress(RedisAway):  # said by the door; its return spoils the lanes
                    self._lines.write(changes)
                if pools := {change.pool for change in changes if change.place is not None}:
                    self.fed(pools)
