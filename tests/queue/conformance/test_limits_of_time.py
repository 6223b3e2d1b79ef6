"""Limits by rate and by day, small tasks before big ones, and what waiting long changes; on both databases, with and
without Redis."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from board.db.clock import read_now
from board.queue.wanted import Scope, Wanted
from board.tasks.states import Move
from board.upkeep import ageing
from tests.queue.conformance.limiting import claim, end, held, limited, look_again
from tests.rig.working import OpenWorking, WorkingBoard


@pytest.fixture
def board(open_limited: OpenWorking) -> WorkingBoard:
    return open_limited(start=False)


def test_a_rate_is_spread_over_its_time(board: WorkingBoard) -> None:
    limited(board, 20, rate="6/h")
    assert claim(board) == ["T-0"]
    end(board, "T-0")
    assert claim(board) == []
    for number in range(1, 5):
        board.at(600 * number - 60)
        look_again(board)
        assert claim(board) == []
        board.at(600 * number + 1)
        look_again(board)
        assert claim(board) == [f"T-{number}"]


def test_of_a_big_rate_a_twentieth_starts_at_once(board: WorkingBoard) -> None:
    limited(board, 20, rate="100/h")
    assert claim(board, 20) == ["T-0", "T-1", "T-2", "T-3", "T-4"]
    board.at(3600)
    look_again(board)
    assert claim(board, 20) == ["T-5", "T-6", "T-7", "T-8", "T-9"]


def test_a_claimer_is_told_to_come_again_when_only_time_opens_a_limit(board: WorkingBoard) -> None:
    limited(board, 3, rate="10/h")
    wanted = Wanted(scope=Scope(), slots=5, rest=5, worker="w", lease=60)
    assert len(board.board.queue.claim(wanted).rows) == 1
    again = board.board.queue.claim(wanted).again
    assert again is not None
    assert 0 < again <= 1


def test_a_day_ends_at_midnight_of_the_boards_zone(open_limited: OpenWorking) -> None:
    board = open_limited(start=False, timezone="Asia/Shanghai")
    with board.board.db.read() as connection:
        moment = read_now(connection)
    to_midnight = (datetime(2031, 3, 4, 16, tzinfo=UTC) - moment).total_seconds()  # 2031-03-05 00:00 in Shanghai
    board.at(to_midnight - 7200)
    limited(board, 8, per_day=2)
    assert claim(board) == ["T-0", "T-1"]
    end(board, "T-0", "T-1")
    board.at(to_midnight - 600)
    look_again(board)
    assert claim(board) == []
    board.at(to_midnight + 1)
    look_again(board)
    assert claim(board) == ["T-2", "T-3"]


def test_a_retry_is_a_start_and_so_counts(board: WorkingBoard) -> None:
    limited(board, 2, per_day=2)
    assert claim(board, 1) == ["T-0"]
    end(board, "T-0", move=Move.RETRY, ready_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert claim(board, 1) == ["T-0"]
    end(board, "T-0")
    assert claim(board, 1) == []


# -- small before big, and time ----------------------------------------------------------------------------------------


def sized(board: WorkingBoard, **sizes: int) -> None:
    for name, size in sizes.items():
        board.submit(name, payload={"text": "x" * size})


def test_of_the_same_moment_small_ones_come_before_big_ones(board: WorkingBoard) -> None:
    board.type(use="echo", limits={"order_by": "size"})
    board.type("usual", use="echo")
    sized(board, big=100_000, small=10, middle=5_000)
    assert claim(board) == ["small", "middle", "big"]


def test_a_big_one_waits_at_most_two_minutes_longer_than_it_would_by_age(board: WorkingBoard) -> None:
    board.type(use="echo", limits={"order_by": "size"})
    sized(board, big=1_000_000)
    board.at(100)
    sized(board, **{"small-100": 1})
    board.at(121)
    sized(board, **{"small-121": 1})
    assert claim(board) == ["small-100", "big", "small-121"]


def test_what_a_limit_holds_back_comes_by_size_as_well(board: WorkingBoard) -> None:
    board.type(use="echo", limits={"order_by": "size", "concurrency": 1})
    sized(board, first=1)
    assert claim(board) == ["first"]
    sized(board, big=100_000, small=10, middle=5_000)
    assert claim(board) == []
    order = []
    for _ in range(3):
        end(board, *order[-1:] or ["first"])
        order += claim(board)
    assert order == ["small", "middle", "big"]


def test_what_a_limit_holds_back_rises_and_comes_from_its_new_lane(board: WorkingBoard) -> None:
    board.type(use="echo", limits={"concurrency": 1})
    for name in ("first", "old"):
        board.submit(name, priority="P3")
    assert claim(board) == ["first"]
    assert held(board, "old") == ["type:trial"]
    board.at(301)
    board.submit("young", priority="P2")
    assert claim(board) == []
    assert ageing.age(board.board.db, board.board.ledger, 300) == 1
    assert board.kinds("old")[-1] == "aged"
    assert (board.task("old")["lane"], held(board, "old", "young")) == (2, ["type:trial"] * 2)
    end(board, "first")
    assert claim(board, only_lanes=[3]) == []
    assert claim(board, only_lanes=[2]) == ["old"]
    end(board, "old")
    assert claim(board) == ["young"]
