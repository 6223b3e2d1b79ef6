"""How many of a key's tasks may wait: counted over all processes, exact under a race, and quick beside a backlog."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from board.access.rights import Actor, key_actor
from board.queue import intake_bound
from board.queue.intake_bound import RETRY_SECONDS, NeverWithinBound, TooMuchWaiting
from board.queue.intake_rate import OverRate
from board.tasks.states import Move
from tests.queue.conformance.limiting import claim, end
from tests.queue.test_gate_scale import BACKLOG, multiply
from tests.queue.test_intake_rate import bulk, put, stored
from tests.rig.working import OpenWorking, WorkingBoard
from tests.tasks.test_plans import plans

THREE = key_actor("three", ["submit"], max_waiting=3)
FREE = key_actor("free", ["submit"])


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    board = working(start=False)
    board.type(use="echo")
    return board


def test_so_many_may_wait_and_there_is_room_again_when_work_begins(board: WorkingBoard) -> None:
    assert put(board, THREE, *"abc") == ["created"] * 3
    with pytest.raises(TooMuchWaiting, match=r"at most 3 may wait.*Nothing was stored") as refused:
        put(board, THREE, "d")
    assert refused.value.retry_after == RETRY_SECONDS
    assert stored(board) == 3
    assert put(board, FREE, *"wxyz") == ["created"] * 4, "another key's are its own"
    assert claim(board, 1) == ["a"]
    assert put(board, THREE, "d") == ["created"]
    with pytest.raises(TooMuchWaiting):
        put(board, THREE, "e")


def test_what_comes_back_into_line_waits_again_and_what_a_person_has_does_not(board: WorkingBoard) -> None:
    put(board, THREE, *"abc")
    assert claim(board, 2) == ["a", "b"]
    end(board, "a", move=Move.ASK)
    end(board, "b", move=Move.HAND_BACK)
    assert put(board, THREE, "d") == ["created"]
    with pytest.raises(TooMuchWaiting):
        put(board, THREE, "e")


def test_duplicates_are_free_and_a_bulk_is_taken_whole_or_not_at_all(board: WorkingBoard) -> None:
    put(board, THREE, *"abc")
    assert put(board, THREE, *"abc") == ["duplicate"] * 3
    claim(board, 2)
    with pytest.raises(TooMuchWaiting, match="3 new ones would be more"):
        bulk(board, THREE, *"abcdef")
    assert stored(board) == 3
    assert bulk(board, THREE, *"abcde") == ["duplicate"] * 3 + ["created"] * 2


def test_a_bulk_that_never_fits_says_how_many_do(board: WorkingBoard) -> None:
    with pytest.raises(NeverWithinBound, match="at most 3 at a time"):
        bulk(board, THREE, *"abcd")
    assert stored(board) == 0


def test_rate_and_bound_hold_both(board: WorkingBoard) -> None:
    both = key_actor("both", ["submit"], "2/d", max_waiting=1)
    put(board, both, "a")
    with pytest.raises(TooMuchWaiting):
        put(board, both, "b")
    claim(board)
    put(board, both, "b")
    claim(board)
    with pytest.raises(OverRate):
        put(board, both, "c")


def test_two_processes_count_together(board: WorkingBoard, working: OpenWorking) -> None:
    boards, ten = [board, working(start=False)], key_actor("ten", ["submit"], max_waiting=10)

    def one(number: int) -> int:
        try:
            put(boards[number % 2], ten, f"T-{number}")
        except TooMuchWaiting:
            return 0
        return 1

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(one, range(30))) == 10
    assert stored(board) == 10


def test_among_a_hundred_thousand_that_wait_it_is_counted_in_an_index_of_its_own(board: WorkingBoard) -> None:
    person = Actor("person", "li@example.org", frozenset())
    put(board, person, "theirs")
    multiply(board, "theirs", BACKLOG)
    put(board, THREE, *"abc")
    with plans(board.board.db, "requester =") as seen, board.board.db.read() as connection:
        assert intake_bound.waiting(connection, THREE.identity, 4) == 3
    [plan] = seen
    assert "ix_tasks_waiting_of" in plan, plan
    assert "Seq Scan" not in plan
