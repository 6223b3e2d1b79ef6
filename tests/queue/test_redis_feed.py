"""What becomes ready reaches Redis after the commit, in bursts, and never at the cost of whoever made it ready."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing

import pytest
from sqlalchemy import select, update

from board.db.engine import Database
from board.queue.redis_feed import BATCH, RedisFeed
from board.queue.redis_lines import Change, RedisLines
from board.redis_door import RedisDoor
from board.tasks.claiming import in_line, stands_in_line
from board.tasks.ledger import Lease, Ledger
from board.tasks.models import tasks
from board.tasks.states import Move
from tests.heart import CALLER, claim, create, new_task
from tests.rig.valkey import ValkeyServer


class Recorder(RedisLines):
    """Keeps what was written, and when."""

    def __init__(self, door: RedisDoor) -> None:
        super().__init__(door)
        self.writes: list[list[Change]] = []
        self.hold = threading.Event()
        self.hold.set()

    def write(self, changes: Iterable[Change]) -> None:
        written = list(changes)
        assert self.hold.wait(20)
        super().write(written)
        self.writes.append(written)


class Fed:
    """Waits for the feed's word."""

    def __init__(self, feed: RedisFeed) -> None:
        self.pools: list[Collection[str]] = []
        self._came = threading.Condition()
        feed.fed = self._note

    def _note(self, pools: Collection[str]) -> None:
        with self._came:
            self.pools.append(pools)
            self._came.notify_all()

    def wait_for(self, number: int) -> None:
        with self._came:
            assert self._came.wait_for(lambda: len(self.pools) >= number, 20)


@pytest.fixture
def db(sqlite_url: str) -> Iterator[Database]:
    with closing(Database(sqlite_url)) as db:
        yield db


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def lines(redis_door: RedisDoor) -> Recorder:
    return Recorder(redis_door)


@pytest.fixture
def feed(lines: Recorder, ledger: Ledger) -> Iterator[RedisFeed]:
    feed = RedisFeed(lines)
    ledger.followers.append(feed.follow)
    ledger.placed.append(feed.placed)
    yield feed
    lines.hold.set()
    feed.close()


def test_what_is_rolled_back_never_gets_there(db: Database, ledger: Ledger, feed: RedisFeed, lines: Recorder) -> None:
    fed = Fed(feed)

    def fail() -> None:
        with db.write() as tx:
            ledger.create(tx, [new_task("T-1")], CALLER)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    create(db, ledger, "T-2")
    fed.wait_for(1)
    assert [[change.task for change in written] for written in lines.writes] == [[1]]
    assert lines.sizes()["board", 2] == 1


def test_a_burst_goes_out_in_few_round_trips_and_is_told_once_it_is_there(
    db: Database, ledger: Ledger, feed: RedisFeed, lines: Recorder
) -> None:
    fed = Fed(feed)
    create(db, ledger, "first")
    fed.wait_for(1)
    lines.hold.clear()
    with db.write() as tx:
        ledger.create(tx, [new_task(f"T-{number}", home_pool="outside") for number in range(BATCH)], CALLER)
    for number in range(20):
        create(db, ledger, f"U-{number}")
    assert len(fed.pools) == 1, "nothing is told before it is there"
    lines.hold.set()
    fed.wait_for(2)
    feed.close()
    assert len(lines.writes) <= 4
    assert (lines.sizes()["board", 2], lines.sizes()["outside", 2]) == (21, BATCH)


@pytest.mark.alone
def test_a_request_does_not_wait_for_a_redis_that_is_silent(
    db: Database, ledger: Ledger, valkey_server: ValkeyServer
) -> None:
    door = RedisDoor(valkey_server.url, "ab12")
    lines = RedisLines(door)
    lines.finish_filling(lines.begin_filling())
    feed = RedisFeed(lines)
    ledger.followers.append(feed.follow)
    fed = Fed(feed)
    create(db, ledger, "T-0")
    fed.wait_for(1)
    valkey_server.freeze()
    slowest = 0.0
    for number in range(100):
        began = time.monotonic()
        create(db, ledger, f"T-{number + 1}")
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < 0.9, "a second is how long the server itself is waited for"
    fed.wait_for(2)  # workers are woken all the same: they ask the ledger
    began = time.monotonic()
    feed.close()
    door.close()
    assert time.monotonic() - began < 2
    valkey_server.thaw()


def test_after_an_outage_the_lanes_are_not_complete(db: Database, ledger: Ledger, valkey_server: ValkeyServer) -> None:
    door = RedisDoor(valkey_server.url, "ab12")
    lines, back = RedisLines(door), threading.Event()
    door.on_back.append(lambda _: back.set())
    lines.finish_filling(lines.begin_filling())
    feed = RedisFeed(lines)
    ledger.followers.append(feed.follow)
    fed = Fed(feed)
    valkey_server.freeze()
    create(db, ledger, "T-1")
    fed.wait_for(1)
    valkey_server.thaw()
    assert back.wait(20)
    assert not RedisLines(RedisDoor(valkey_server.url, "ab12")).complete()
    feed.close()
    door.close()


def test_what_leaves_the_line_without_a_claim_leaves_redis(
    db: Database, ledger: Ledger, feed: RedisFeed, lines: Recorder
) -> None:
    task = create(db, ledger, "T-1")
    with db.write() as tx:
        ledger.cancel(tx, ledger.lock(tx, task), CALLER, None)
    feed.close()
    assert sum(lines.sizes().values()) == 0


def test_the_row_and_the_query_agree_on_who_stands_in_line(db: Database, ledger: Ledger) -> None:
    """stands_in_line and in_line say the same of every kind of row."""

    for number, status in enumerate(["pending", "retrying", "running", "needs_review", "done", "failed", "cancelled"]):
        for more in range(32):
            task = create(db, ledger, f"T-{number}-{more}")
            values = {
                "status": status,
                "phase": "act" if more & 1 else "work",
                "has_action": bool(more & 2),
                "unmet_needs": 1 if more & 4 else 0,
                "suspect": bool(more & 8),
                "held_by": "type:trial" if more & 16 else None,
            }
            with db.write() as tx:
                tx.execute(update(tasks).where(tasks.c.id == task).values(**values))
    with db.read() as connection:
        rows = connection.execute(select(tasks)).mappings().all()
        query = select(tasks.c.id).where(*in_line(), tasks.c.suspect.is_(False))
        found = set(connection.execute(query).scalars())
    assert found == {row["id"] for row in rows if stands_in_line(row)}
    assert len(found) == 2 * 3  # pending and retrying: work without and with an action, and an act that has one


def test_neither_a_claim_nor_an_end_is_written_to_redis(
    db: Database, ledger: Ledger, feed: RedisFeed, lines: Recorder
) -> None:
    fed = Fed(feed)
    create(db, ledger, "T-1")
    fed.wait_for(1)
    [row] = claim(db, ledger)
    assert row["status"] == "running"
    with db.write() as tx:
        ledger.settle(tx, Lease(row["id"], 1), Move.SUCCEED, CALLER)
    feed.close()
    assert len(lines.writes) == 1
