"""The lanes in Redis are filled from the ledger: all of it, in order, whatever happens meanwhile."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from board.db.engine import Database
from board.queue.lanes import DEFAULT_WEIGHTS, LANES
from board.queue.redis_lines import Change, Place, RedisLines
from board.redis_door import RedisDoor
from board.tasks.ledger import Ledger
from board.tasks.models import tasks
from board.tasks.states import RANK_FIRST, Pool
from board.upkeep import rebuild
from board.upkeep.rebuild import Rebuild
from tests.heart import CALLER, claim, create, new_task
from tests.rig.ports import free_port
from tests.rig.valkey import ValkeyServer


@pytest.fixture
def door(redis_url: str) -> Iterator[RedisDoor]:
    door = RedisDoor(redis_url, secrets.token_hex(8))
    yield door
    RedisLines(door).begin_filling()
    door.close()


@pytest.fixture
def lines(door: RedisDoor) -> RedisLines:
    return RedisLines(door)


def put(db: Database, lane: int, number: int, **columns: object) -> None:
    names = [f"{lane}-{secrets.token_hex(6)}" for _ in range(number)]
    with db.write() as tx:
        Ledger().create(tx, [new_task(it, priority=lane, **columns) for it in names], CALLER)


def everything(lines: RedisLines, pool: Pool = Pool.BOARD) -> list[int]:
    taken = lines.take(pool, LANES, DEFAULT_WEIGHTS, 10_000, 10_000, datetime.now(UTC))
    assert taken is not None
    return list(taken)


def test_all_that_stands_in_line_is_put_in_and_nothing_else(
    db: Database, lines: RedisLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "BATCH", 7)  # so that it needs several, and ends in the middle of one and at its edge
    for lane, number in ((0, 3), (1, 14), (2, 20), (3, 50)):
        put(db, lane, number)
    put(db, 2, 5, rank=RANK_FIRST)
    put(db, 1, 4, home_pool=Pool.OUTSIDE)
    put(db, 3, 2, run_after=datetime(2099, 1, 1, tzinfo=UTC))
    ended = [create(db, Ledger(), f"ended-{number}") for number in range(3)]
    suspect = create(db, Ledger(), "suspect")
    with db.write() as tx:
        tx.execute(update(tasks).where(tasks.c.id.in_(ended)).values(status="done"))
        tx.execute(update(tasks).where(tasks.c.id == suspect).values(suspect=True))
    lines.write([Change(9999, Pool.BOARD, Place(9999, Pool.BOARD, 2, 1, datetime.now(UTC)), False)])  # stale
    assert Rebuild(db, lines).fill() == 3 + 14 + 20 + 50 + 5 + 4 + 2
    expected = {("board", 0): 3, ("board", 1): 14, ("board", 2): 25, ("board", 3): 52, ("outside", 1): 4}
    assert {place: number for place, number in lines.sizes().items() if number} == expected
    assert len(everything(lines, Pool.OUTSIDE)) == 4
    taken = everything(lines)
    with db.write() as tx:
        granted = Ledger().candidates_of(tx, taken, pool=Pool.BOARD)
    assert (len(granted), len(taken)) == (92, 92)
    in_order = [row["id"] for lane in LANES for row in claim(db, Ledger(), lane=lane, limit=100)]
    assert taken == in_order


def test_it_fills_when_something_is_missing_and_only_then(db: Database, lines: RedisLines, door: RedisDoor) -> None:
    put(db, 2, 10)
    keeper = Rebuild(db, lines)
    assert [keeper.look(), keeper.look()] == [True, False]
    door.run(lambda client: client.delete(*client.keys(door.keys("*"))))  # as FLUSHALL does
    assert [keeper.look(), keeper.look()] == [True, False]
    door.run(lines.spoil)
    assert [keeper.look(), keeper.look()] == [True, False]
    assert len(everything(lines)) == 10


def test_what_has_drifted_apart_is_found_by_counting(
    db: Database, lines: RedisLines, door: RedisDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "DRIFT_TASKS", 5)
    put(db, 2, 20)
    keeper = Rebuild(db, lines)
    assert keeper.look()
    door.run(lambda client: client.delete(lines.key("board", 2)))  # thrown away for want of memory
    assert not keeper.look(), "it is not counted each time"
    monkeypatch.setattr(rebuild, "COUNT_SECONDS", 0.0)
    assert keeper.look()
    assert not keeper.look()
    assert lines.sizes()["board", 2] == 20
    stale = [Change(n, Pool.BOARD, Place(n, Pool.BOARD, 3, 1, datetime.now(UTC)), False) for n in range(1000, 1010)]
    lines.write(stale)
    assert keeper.look()
    assert lines.sizes()["board", 3] == 0


class Interrupted(RedisLines):
    """Lets others act between two batches."""

    def __init__(self, door: RedisDoor) -> None:
        super().__init__(door)
        self.between, self.go_on = threading.Event(), threading.Event()

    def write(self, changes: Iterable[Change]) -> None:
        super().write(changes)
        self.between.set()
        assert self.go_on.wait(20)


def test_what_is_put_in_meanwhile_is_not_lost(
    db: Database, door: RedisDoor, lines: RedisLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "BATCH", 10)
    put(db, 0, 10)
    put(db, 2, 30)
    interrupted = Interrupted(door)
    filling = threading.Thread(target=Rebuild(db, interrupted).fill)
    filling.start()
    assert interrupted.between.wait(20)  # P0 has been read and written
    late = create(db, Ledger(), "late", priority=0)
    lines.write([Change(late, Pool.BOARD, Place(late, Pool.BOARD, 0, 1, datetime.now(UTC)), False)])
    interrupted.go_on.set()
    filling.join(20)
    assert lines.complete()
    taken = everything(lines)
    assert (len(taken), len(set(taken)), late in taken) == (41, 41, True)


def test_without_redis_it_does_nothing_and_says_nothing(db: Database) -> None:
    door = RedisDoor(f"redis://127.0.0.1:{free_port()}/0", "ab12")
    assert Rebuild(db, RedisLines(door)).look() is False
    assert door.trouble is not None
    door.close()


def test_a_filling_that_redis_did_not_survive_is_begun_anew(db: Database, valkey_server: ValkeyServer) -> None:
    put(db, 0, 3)
    put(db, 2, 3)
    door = RedisDoor(valkey_server.url, "ab12")
    interrupted = Interrupted(door)
    keeper, done = Rebuild(db, interrupted), []
    filling = threading.Thread(target=lambda: done.append(keeper.look()))
    filling.start()
    assert interrupted.between.wait(20)
    valkey_server.stop()
    interrupted.go_on.set()
    filling.join(20)
    assert done == [False]
    valkey_server.start()
    back = threading.Event()
    door.on_back.append(lambda _: back.set())
    assert back.wait(20)
    while door.trouble is not None:
        pass
    assert keeper.look()
    assert len(everything(interrupted)) == 6
    door.close()
