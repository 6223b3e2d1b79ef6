"""In which order one lane gives its tasks, and when."""

from __future__ import annotations

from datetime import timedelta

import pytest

from board.db.clock import now, read_now
from board.tasks.states import RANK_FIRST, Move
from tests.queue.conftest import Hall


def test_nothing_waits_nothing_is_given(hall: Hall) -> None:
    assert hall.claim(16) == []
    assert not hall.take(16).alone


def test_first_come_first_served_and_at_one_moment_in_the_order_given(hall: Hall) -> None:
    hall.put("c", "a", "b")
    hall.at(1)
    hall.put("0")
    hall.at(2)
    names = [f"n-{number}" for number in range(30, 0, -1)]  # over a power of ten, so that no order of texts passes
    hall.put(*names)
    assert hall.claim(3) + hall.claim(20) + hall.all() == ["c", "a", "b", "0", *names]


def test_what_comes_first_in_its_lane_comes_first_however_late_it_came(hall: Hall) -> None:
    hall.put("old")
    hall.at(10)
    hall.put("first-1", "first-2", rank=RANK_FIRST)
    hall.put("rush", lane=1)
    assert hall.claim(2) == ["rush", "first-1"]
    assert hall.claim(5) == ["first-2", "old"]


@pytest.mark.parametrize("first", [True, False])
def test_the_future_waits_until_it_is_due(hall: Hall, first: bool) -> None:
    with hall.db.read() as connection:
        moment = read_now(connection)
    rank = {"rank": RANK_FIRST} if first else {}
    hall.put("at-60", run_after=moment + timedelta(seconds=60), **rank)
    hall.put("at-30", run_after=moment + timedelta(seconds=30), **rank)
    hall.at(29)
    hall.put("usual")
    assert hall.claim(5) == ["usual"]
    assert hall.claim(5) == []
    hall.at(31)
    assert hall.claim(5) == ["at-30"]
    hall.at(3600)
    hall.put("late")
    assert hall.claim(5) == ["at-60", "late"]


def test_a_retry_comes_when_it_is_due_and_is_as_old_as_that(hall: Hall) -> None:
    hall.put("T-1")
    [row] = hall.take().rows
    hall.put("T-2")
    hall.end(row, Move.RETRY, ready_at=now(20))
    assert hall.all() == ["T-2"]
    hall.at(10)
    hall.put("T-3")
    hall.at(30)
    hall.put("T-4")
    assert hall.claim(3) == ["T-3", "T-1", "T-4"]


def test_what_is_handed_back_is_there_again_at_once(hall: Hall) -> None:
    hall.put("T-1")
    for _ in range(3):
        [row] = hall.take().rows
        hall.end(row, Move.HAND_BACK, ready_at=now())
    assert hall.all() == ["T-1"]


def test_an_action_that_is_left_goes_before_new_work(hall: Hall) -> None:
    hall.put("T-1")
    [row] = hall.take().rows
    hall.put("T-2", "T-3")
    hall.at(1)
    hall.end(row, Move.PROCEED, ready_at=now(), has_action=True)
    assert hall.claim(3) == ["T-1", "T-2", "T-3"]
