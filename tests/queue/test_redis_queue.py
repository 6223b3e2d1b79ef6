"""Redis proposes, the ledger decides: whatever is lost, stale or away in Redis, the work goes on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest

from board.db.engine import Database
from board.queue import redis_queue
from board.queue.redis_lines import Change, Place, RedisLines
from board.queue.redis_queue import RedisQueue
from board.queue.wanted import Scope, Wanted
from board.redis_door import TIMEOUT_SECONDS, RedisDoor
from board.tasks.ledger import Ledger
from board.tasks.states import RANK_USUAL, Pool
from board.upkeep.rebuild import Rebuild
from tests.heart import claim, gate, settable_clock
from tests.queue.conftest import RedisHall
from tests.rig.valkey import ValkeyServer

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def hall(redis_hall: RedisHall) -> RedisHall:
    return redis_hall


@pytest.fixture
def own_hall(
    sqlite_url: str, valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[RedisHall, RedisDoor]]:
    """On a server that the test may end."""
    monkeypatch.setattr(RedisQueue, "_must_ask", lambda *_: False)
    monkeypatch.setattr(redis_queue, "LOOK_SECONDS", 0.0)  # the clock of a test jumps
    db, door = Database(sqlite_url), RedisDoor(valkey_server.url, "ab12")
    with closing(db), settable_clock(db) as at:
        hall = RedisHall(db, Ledger(), at, door)
        yield hall, door
        hall.feed.close()
        door.close()


def propose(hall: RedisHall, task: int, lane: int = 2) -> None:
    """As if the ledger had once said so."""
    hall.settle()
    RedisLines.write(hall.lines, [Change(task, Pool.BOARD, Place(task, Pool.BOARD, lane, RANK_USUAL, LONG_AGO), False)])


def test_redis_gives_what_it_knows_without_asking_the_ledger(hall: RedisHall) -> None:
    """Else tests/queue/conformance would prove the ledger's queue twice."""
    hall.put("T-1", "T-2")
    assert hall.claim(2) == ["T-1", "T-2"]
    assert hall.claim(2) == []
    assert hall.from_ledger.claims == 0


def test_ids_of_what_is_not_ready_are_refused_and_gone(hall: RedisHall) -> None:
    [done] = hall.put("done")
    [row] = hall.take().rows
    [later] = hall.put("later", run_after=datetime(2099, 1, 1, tzinfo=UTC))
    [outside] = hall.put("outside", home_pool=Pool.OUTSIDE)
    [urgent] = hall.put("urgent", lane=1)
    for task in (done, later, outside, urgent, 123_456):
        propose(hall, task, lane=2)
    assert row["id"] == done
    hall.put("good")
    assert hall.claim(9, scope=Scope(only_lanes=[2])) == ["good"]
    assert hall.lines.sizes()["board", 2] == 0
    assert hall.claim(9) == ["urgent"]
    assert hall.claim(9, scope=Scope(Pool.OUTSIDE)) == ["outside"]


def test_an_id_that_is_there_twice_is_claimed_once(hall: RedisHall) -> None:
    [task] = hall.put("T-1")
    hall.settle()
    propose(hall, task, lane=1)
    propose(hall, task, lane=0)
    assert hall.claim(9) == ["T-1"]
    assert hall.claim(9) == []
    assert sum(hall.lines.sizes().values()) == 0


def test_many_stale_ids_do_not_hide_what_is_ready(hall: RedisHall) -> None:
    for stale in range(1000, 1500):
        propose(hall, stale)
    hall.put("good")
    assert hall.claim(2) == ["good"]


def test_the_shares_hold_over_all_workers_together(hall: RedisHall) -> None:
    """Each of many claims one task at a time; with a round of its own, each would begin with P0."""
    hall.fill(range(4), 40)
    parts = (hall.db, hall.ledger, gate(hall.db, hall.ledger), hall.lines, hall.feed, hall.from_ledger)
    workers = [RedisQueue(*parts) for _ in range(8)]
    hall.settle()
    wanted = Wanted(Scope(), 1, 1, worker="w1", lease=60.0)
    taken = Counter(row["lane"] for _ in range(6) for worker in workers for row in worker.claim(wanted).rows)
    assert taken == {0: 32, 1: 10, 2: 4, 3: 2}


def test_what_the_ledger_gave_does_not_stay_in_redis(hall: RedisHall) -> None:
    hall.put("a", type="a")
    hall.put("b", type="b")
    assert hall.claim(9, scope=Scope(only_types=["a"])) == ["a"]
    hall.settle()
    assert sum(hall.lines.sizes().values()) == 1


def test_an_id_that_was_lost_is_found_however_much_else_redis_holds(
    hall: RedisHall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The most urgent task is unknown to Redis, whose lanes are full of others: every two seconds the ledger says."""
    monkeypatch.undo()
    assert redis_queue.ASK_SECONDS == 2.0
    monkeypatch.setattr(redis_queue, "ASK_SECONDS", 1000.0)
    hall.fill([3], 50)
    assert hall.claim() == ["P3-000"]
    assert hall.from_ledger.claims == 1, "the first one asks the ledger"
    [rush] = hall.put("rush", lane=0)
    hall.settle()
    RedisLines.write(hall.lines, [Change(rush, Pool.BOARD, None, True)])
    assert [hall.claim(), hall.claim()] == [["P3-001"], ["P3-002"]]
    monkeypatch.setattr(redis_queue, "ASK_SECONDS", 0.0)
    assert hall.claim() == ["rush"]
    assert hall.from_ledger.claims == 2


def test_flushed_the_ledger_is_asked_at_once_and_filled_redis_goes_on(hall: RedisHall, redis_door: RedisDoor) -> None:
    """B033: FLUSHALL with work waiting."""
    hall.fill(range(4), 25)
    hall.settle()
    names = redis_door.run(lambda client: client.keys(redis_door.keys("*")))
    redis_door.run(lambda client: client.delete(*names))
    assert hall.claim(16) == [f"P0-{number:03}" for number in range(16)]
    assert hall.from_ledger.claims == 1
    assert Rebuild(hall.db, hall.lines).look() is True
    taken = hall.claim_at_once(50)
    while found := hall.claim_at_once(50):
        taken += found
    assert (len(taken), len(set(taken))) == (84, 84)
    assert hall.from_ledger.claims == 1


@pytest.mark.parametrize("end", ["stop", "freeze"])
def test_lost_in_mid_run_only_the_first_claim_waits(
    own_hall: tuple[RedisHall, RedisDoor], valkey_server: ValkeyServer, end: str
) -> None:
    hall, door = own_hall
    hall.fill([2], 40)
    assert hall.claim(10) == [f"P2-{number:03}" for number in range(10)]
    getattr(valkey_server, end)()
    began = time.monotonic()
    taken = [name for _ in range(30) for name in hall.claim_at_once()]
    assert taken == [f"P2-{number:03}" for number in range(10, 40)]
    assert time.monotonic() - began < 2 * TIMEOUT_SECONDS + 2
    hall.put("later")  # nobody is hindered to put in more
    assert hall.claim_at_once() == ["later"]
    valkey_server.thaw() if end == "freeze" else valkey_server.start()
    deadline = time.monotonic() + 20
    while door.trouble is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert Rebuild(hall.db, hall.lines).look() is True
    asked = hall.from_ledger.claims
    hall.put("again")
    while hall.lines.sizes()["board", 2] == 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert hall.claim_at_once() == ["again"]
    assert hall.from_ledger.claims == asked


def test_refused_at_the_start_everything_comes_from_the_ledger(sqlite_url: str, valkey_server: ValkeyServer) -> None:
    valkey_server.stop()
    db, ledger, door = Database(sqlite_url), Ledger(), RedisDoor(valkey_server.url, "ab12")
    with closing(db), closing(door), settable_clock(db) as at:
        hall = RedisHall(db, ledger, at, door)
        hall.put("T-1", "T-2")
        assert hall.claim_at_once(2) == ["T-1", "T-2"]
        assert claim(db, ledger) == []
        hall.feed.close()
