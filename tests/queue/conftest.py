"""A queue of each kind on a database of each kind: every test that takes `hall` runs on all four."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest
from sqlalchemy import RowMapping

from board import rooms
from board.db.engine import Database
from board.ports import Handler
from board.queue import redis_feed, redis_lines, redis_queue
from board.queue.ledger_queue import LedgerQueue
from board.queue.redis_feed import RedisFeed
from board.queue.redis_lines import Change, RedisLines
from board.queue.redis_queue import RedisQueue
from board.queue.wanted import Queue, Scope, Taken, Wanted
from board.redis_door import RedisDoor
from board.tasks.ledger import Lease, Ledger
from board.tasks.states import Move
from board.upkeep.rebuild import Rebuild
from tests.heart import CALLER, WORKER, gate, new_task, settable_clock
from tests.rig.valkey import REDIS_URLS
from tests.rig.working import OpenWorking, WorkingBoard

SETTLE = 20.0  # seconds for the feed's thread to write what it has; it takes milliseconds


class Hall:
    """A queue, its ledger, and short words for both."""

    def __init__(self, db: Database, ledger: Ledger, queue: Queue, at: Callable[[float], None]) -> None:
        self.db, self.ledger, self.queue, self.at = db, ledger, queue, at

    def put(self, *task_ids: str, lane: int = 2, **columns: Any) -> list[int]:
        """New tasks, all at the very same moment; their internal ids."""
        with self.db.write() as tx:
            made = self.ledger.create(tx, [new_task(it, priority=lane, **columns) for it in task_ids], CALLER)
        return [made[it] for it in task_ids]

    def fill(self, lanes: Iterable[int], number: int) -> None:
        """So many tasks in each of the lanes, named P0-000, P0-001, …"""
        for lane in lanes:
            self.put(*(f"P{lane}-{place:03}" for place in range(number)), lane=lane)

    def take(self, slots: int = 1, rest: int | None = None, scope: Scope | None = None, **more: Any) -> Taken:
        """One claim. rest: as many as slots, if left out."""
        self.settle()
        given: dict[str, Any] = {"worker": "w1", "lease": 60.0} | more
        return self.queue.claim(Wanted(scope or Scope(), slots, slots if rest is None else rest, **given))

    def claim(self, slots: int = 1, rest: int | None = None, scope: Scope | None = None, **more: Any) -> list[str]:
        """The IDs of what one claim gets, in its order."""
        return [row["task_id"] for row in self.take(slots, rest, scope, **more).rows]

    def all(self, scope: Scope | None = None) -> list[str]:
        """Claims one by one until there is nothing."""
        found: list[str] = []
        while one := self.claim(scope=scope):
            found += one
        return found

    def end(self, row: RowMapping, move: Move, **changes: Any) -> None:
        """A worker's move at the end of an attempt."""
        with self.db.write() as tx:
            lease = Lease(row["id"], row["lease_token"])
            assert self.ledger.settle(tx, lease, move, WORKER, changes=changes) is not None

    def settle(self) -> None:
        """Wait until what was committed has reached the queue."""


class WatchedFeed(RedisFeed):
    """Tells when all that it was given is written."""

    def __init__(self, lines: WatchedLines) -> None:
        super().__init__(lines)
        self._written, self._given = lines, 0

    def _add(self, changes: Sequence[Change]) -> None:
        with self._written.moved:
            self._given += len(changes)
        super()._add(changes)

    def settle(self) -> None:
        """Wait until all of it is written."""
        with self._written.moved:
            assert self._written.moved.wait_for(lambda: self._written.number >= self._given, SETTLE)


class WatchedLines(RedisLines):
    def __init__(self, door: RedisDoor) -> None:
        super().__init__(door)
        self.moved, self.number = threading.Condition(), 0

    def write(self, changes: Iterable[Change]) -> None:
        written = list(changes)
        super().write(written)
        with self.moved:
            self.number += len(written)
            self.moved.notify_all()


class FromLedger(LedgerQueue):
    """Counts how often it was asked."""

    claims = 0

    def claim(self, wanted: Wanted) -> Taken:
        self.claims += 1
        return super().claim(wanted)


class RedisHall(Hall):
    """A queue in Redis that is not used to asking the ledger: what it knows it knows from Redis."""

    def __init__(self, db: Database, ledger: Ledger, at: Callable[[float], None], door: RedisDoor) -> None:
        lines, limits = WatchedLines(door), gate(db, ledger)
        self.feed, self.from_ledger, self.lines = WatchedFeed(lines), FromLedger(db, ledger, limits), lines
        ledger.followers.append(self.feed.follow)
        ledger.placed.append(self.feed.placed)
        super().__init__(db, ledger, RedisQueue(db, ledger, limits, lines, self.feed, self.from_ledger), at)
        Rebuild(db, lines).look()

    def settle(self) -> None:
        self.feed.settle()

    def claim_at_once(self, slots: int = 1) -> list[str]:
        """Without waiting for the feed, as when Redis is away."""
        wanted = Wanted(Scope(), slots, slots, worker="w1", lease=60.0)
        return [row["task_id"] for row in self.queue.claim(wanted).rows]


@contextmanager
def door_of(url: str) -> Iterator[RedisDoor]:
    """Of an installation of its own."""
    door = RedisDoor(url, secrets.token_hex(8))
    yield door
    if names := door.run(lambda client: client.keys(door.keys("*"))):  # of somebody's Redis, nothing stays behind
        door.run(lambda client: client.delete(*names))
    door.close()


@contextmanager
def hall_on(database_url: str, door: RedisDoor, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisHall]:
    """On Redis, which is asked for as long as it is there."""
    monkeypatch.setattr(RedisQueue, "_must_ask", lambda *_: False)
    monkeypatch.setattr(redis_queue, "LOOK_SECONDS", 0.0)  # the clock of a test jumps
    db = Database(database_url)
    with closing(db), settable_clock(db) as at:
        hall = RedisHall(db, Ledger(), at, door)
        yield hall
        hall.feed.close()


@pytest.fixture
def redis_door(each_redis_url: str) -> Iterator[RedisDoor]:
    with door_of(each_redis_url) as door:
        yield door


@pytest.fixture
def redis_hall(database_url: str, redis_door: RedisDoor, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisHall]:
    with hall_on(database_url, redis_door, monkeypatch) as hall:
        yield hall


@pytest.fixture(params=["ledger", *REDIS_URLS])
def hall(request: pytest.FixtureRequest, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hall]:
    """Each kind of queue."""
    if request.param == "ledger":
        db, ledger = Database(database_url), Ledger()
        with closing(db), settable_clock(db) as at:
            yield Hall(db, ledger, LedgerQueue(db, ledger, gate(db, ledger)), at)
        return
    url = request.getfixturevalue(REDIS_URLS[request.param])
    with door_of(url) as door, hall_on(database_url, door, monkeypatch) as on_redis:
        yield on_redis


@pytest.fixture(params=["ledger", *REDIS_URLS])
def open_limited(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, working: OpenWorking) -> OpenWorking:
    """Opens wired boards on each kind of queue; that in Redis is full from the start and not used to asking the
    ledger. Before each claim: `settle(board)`."""
    if request.param == "ledger":
        return working
    url = request.getfixturevalue(REDIS_URLS[request.param])
    monkeypatch.setattr(RedisQueue, "_must_ask", lambda *_: False)
    monkeypatch.setattr(redis_queue, "LOOK_SECONDS", 0.0)  # the clock of a test jumps
    monkeypatch.setattr(rooms, "LedgerQueue", FromLedger)
    monkeypatch.setattr(redis_feed, "RedisFeed", WatchedFeed)
    monkeypatch.setattr(redis_lines, "RedisLines", WatchedLines)

    def open_(*handlers: Handler, start: bool = True, **settings: Any) -> WorkingBoard:
        board = working(*handlers, start=start, redis_url=url, **settings)
        assert board.board.rebuild is not None
        board.board.rebuild.look()
        return board

    return open_


def settle(board: WorkingBoard) -> None:
    """Wait until what was committed on a board of `open_limited` has reached its queue."""
    if isinstance(board.board.feed, WatchedFeed):
        board.board.feed.settle()


def asked_of_the_ledger(board: WorkingBoard) -> int:
    """How often the queue in Redis of a board of `open_limited` has asked the ledger who goes next."""
    assert isinstance(board.board.queue, RedisQueue)
    from_ledger = board.board.queue._from_ledger
    assert isinstance(from_ledger, FromLedger)
    return from_ledger.claims
