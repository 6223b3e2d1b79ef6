"""take.lua shares the slots out exactly as board.queue.lanes does; what it takes is gone, and it keeps the round."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.crc import key_slot

from board.queue.lanes import DEFAULT_WEIGHTS, LANES, Shares
from board.queue.redis_lines import Change, Place, RedisLines
from board.redis_door import RedisDoor
from board.tasks.states import RANK_FIRST, RANK_USUAL, Pool

NOW = datetime(2026, 12, 4, 12, tzinfo=UTC)
WEIGHTS = [DEFAULT_WEIGHTS, (3, 1, 2, 1)]
STEPS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(LANES), st.integers(1, 30), st.booleans()),
    st.tuples(st.just("take"), st.integers(0, 12), st.integers(0, 12), st.sampled_from(WEIGHTS)),
)


@pytest.fixture
def lines(redis_door: RedisDoor) -> RedisLines:
    lines = RedisLines(redis_door)
    lines.finish_filling(lines.begin_filling())
    return lines


@pytest.fixture
def another(each_redis_url: str) -> Iterator[RedisLines]:
    """The lanes of another board on the same Redis."""
    door = RedisDoor(each_redis_url, secrets.token_hex(8))
    lines = RedisLines(door)
    lines.finish_filling(lines.begin_filling())
    yield lines
    lines.begin_filling()
    door.close()


def put(lines: RedisLines, task: int, lane: int, rank: int = RANK_USUAL, at: datetime = NOW) -> None:
    lines.write([Change(task, Pool.BOARD, Place(task, Pool.BOARD, lane, rank, at), False)])


def take(lines: RedisLines, slots: int, moment: datetime = NOW) -> list[int]:
    taken = lines.take(Pool.BOARD, LANES, DEFAULT_WEIGHTS, slots, slots, moment)
    assert taken is not None
    return list(taken)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=25))
def test_the_turns_are_those_of_lanes_py(lines: RedisLines, steps: list[tuple[str, int, int, object]]) -> None:
    lines.finish_filling(lines.begin_filling())
    # What the rule in Python has in mind is known at the beginning only; a new set of weights is a beginning.
    shares, waiting, number = Shares((1, 1, 1, 1)), Counter[int](), 0
    lines.take(Pool.BOARD, LANES, (1, 1, 1, 1), 0, 0, NOW)
    for what, first, second, more in steps:
        if what == "put":
            for _ in range(second):
                number += 1
                put(lines, number, first, RANK_FIRST if more else RANK_USUAL)
            waiting[first] += second
            continue
        slots, rest = first, min(first, second)
        assert isinstance(more, tuple)
        shares.set_weights(more)
        expected = shares.share(slots, rest, {lane: min(slots, waiting[lane]) for lane in LANES})
        taken = lines.take(Pool.BOARD, LANES, more, slots, rest, NOW)
        assert taken is not None
        assert Counter(taken.values()) == expected
        assert list(taken.values()) == sorted(taken.values())
        waiting -= Counter(expected)
    assert sum(lines.sizes().values()) == sum(waiting.values())


def test_what_is_taken_is_gone_and_what_is_due_later_stays(lines: RedisLines) -> None:
    for task, seconds in ((1, 0), (2, -5), (3, 0.001), (4, 86_400)):
        put(lines, task, 2, at=NOW + timedelta(seconds=seconds))
    assert take(lines, 10) == [2, 1]
    assert take(lines, 10) == []
    assert take(lines, 10, NOW + timedelta(milliseconds=1)) == [3]
    assert take(lines, 10, NOW + timedelta(days=1)) == [4]


@pytest.mark.parametrize("lane", LANES)
def test_first_in_a_lane_only_when_it_is_due(lines: RedisLines, lane: int) -> None:
    put(lines, 1, lane)
    put(lines, 2, lane, RANK_FIRST, NOW + timedelta(seconds=1))
    put(lines, 3, lane, RANK_FIRST)
    assert take(lines, 10) == [3, 1]
    assert take(lines, 10, NOW + timedelta(seconds=1)) == [2]


def test_a_moment_far_away_is_no_other_lane(lines: RedisLines) -> None:
    put(lines, 1, 1, at=datetime(9999, 12, 31, tzinfo=UTC))
    put(lines, 2, 1, RANK_FIRST, datetime(9999, 12, 31, tzinfo=UTC))
    assert take(lines, 10) == []
    assert lines.sizes()["board", 1] == 2


def test_an_id_put_in_twice_is_there_once_and_the_last_place_counts(lines: RedisLines) -> None:
    for lane in (3, 1):
        place = Place(7, Pool.BOARD, lane, RANK_USUAL, NOW)
        lines.write([Change(7, Pool.BOARD, place, True)])
    assert lines.take(Pool.BOARD, LANES, DEFAULT_WEIGHTS, 5, 5, NOW) == {7: 1}
    lines.write([Change(8, Pool.BOARD, Place(8, Pool.BOARD, 1, RANK_USUAL, NOW), False)])
    lines.write([Change(8, Pool.BOARD, None, True)])
    assert take(lines, 5) == []


def test_a_thousand_at_once(lines: RedisLines) -> None:
    changes = [Change(n, Pool.BOARD, Place(n, Pool.BOARD, n % 4, RANK_USUAL, NOW), False) for n in range(5000)]
    lines.write(changes)
    assert len(take(lines, 1000)) == 1000
    lines.write([change._replace(place=None, clear=True) for change in changes])
    assert sum(lines.sizes().values()) == 0


def test_two_boards_on_one_redis_never_meet(lines: RedisLines, another: RedisLines) -> None:
    put(lines, 1, 2)
    put(another, 2, 2)
    assert take(lines, 10) == [1]
    assert take(another, 10) == [2]
    put(lines, 3, 2)
    another.begin_filling()  # empties its own lanes, and marks its own as incomplete
    assert take(lines, 10) == [3]


def test_every_key_is_in_one_slot_of_a_cluster(lines: RedisLines, redis_door: RedisDoor) -> None:
    put(lines, 1, 2)
    put(lines, 2, 3, at=NOW + timedelta(days=1))
    take(lines, 1)
    names = redis_door.run(lambda client: client.keys(redis_door.keys("*")))
    assert len(names) >= 4
    assert len({key_slot(name.encode()) for name in names}) == 1
