"""Whether the copy in Redis is complete: told by two marks, and by the name of the running server."""

from __future__ import annotations

import pytest

from board.queue.lanes import DEFAULT_WEIGHTS, LANES
from board.queue.redis_lines import RedisLines
from board.redis_door import RedisDoor
from board.tasks.states import Pool
from tests.queue.test_take_lua import NOW, put
from tests.rig.valkey import ValkeyServer


@pytest.fixture
def lines(redis_door: RedisDoor) -> RedisLines:
    return RedisLines(redis_door)


def take(lines: RedisLines) -> list[int] | None:
    taken = lines.take(Pool.BOARD, LANES, DEFAULT_WEIGHTS, 10, 10, NOW)
    return None if taken is None else list(taken)


def test_nothing_is_taken_before_the_first_filling_and_during_one(lines: RedisLines) -> None:
    put(lines, 1, 2)
    assert (lines.complete(), take(lines)) == (False, None)
    mark = lines.begin_filling()
    put(lines, 2, 2)
    assert (lines.complete(), take(lines)) == (False, None)
    lines.finish_filling(mark)
    assert (lines.complete(), take(lines)) == (True, [2])


def test_a_filling_that_another_one_has_overtaken_counts_for_nothing(lines: RedisLines) -> None:
    first, second = lines.begin_filling(), lines.begin_filling()
    lines.finish_filling(first)
    assert not lines.complete()
    lines.finish_filling(second)
    assert lines.complete()


def test_changes_lost_while_it_is_filled_make_it_void(lines: RedisLines, redis_door: RedisDoor) -> None:
    mark = lines.begin_filling()
    redis_door.run(lines.spoil)
    lines.finish_filling(mark)
    assert (lines.complete(), take(lines)) == (False, None)


def test_a_restart_that_kept_the_marks_is_seen(valkey_server: ValkeyServer) -> None:
    door = RedisDoor(valkey_server.url, "ab12")
    lines = RedisLines(door)
    lines.finish_filling(lines.begin_filling())
    names = [door.keys("filling", "begun"), door.keys("filling", "finished")]
    marks = door.run(lambda client: client.mget(names))
    valkey_server.stop()
    valkey_server.start()
    door.run(lambda client: client.mset(dict(zip(names, marks, strict=True))))  # as from its append-only file
    assert take(lines) == []
    assert not lines.complete()
    door.close()
