"""How many new tasks a key may put in: over HTTP, in bulk, from several processes, and with a clock that is set."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import func, select

from board.access.rights import Actor, key_actor
from board.api.bulk import take_many
from board.queue.intake_rate import NeverWithinRate, OverRate
from board.tasks.bodies import TaskIn
from board.tasks.models import tasks
from tests.rig.working import OpenWorking, WorkingBoard

SIX = key_actor("six", ["submit"], "6/min")
FREE = key_actor("free", ["submit"])


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    board = working(start=False)
    board.type(use="echo")
    return board


def put(board: WorkingBoard, actor: Actor, *names: str) -> list[str]:
    """As POST /tasks does; the status of each."""
    by = actor.by("api")
    said = []
    for name in names:
        body = TaskIn(type="trial", task_id=name)
        with board.board.db.write() as tx:
            row = board.board.intake.prepare(tx, body, by)
            [taken] = board.board.intake.store(tx, [(body, row)], by)
            board.board.intake_rate.charge(tx, actor, int(taken.created))
        said.append("created" if taken.created else "duplicate")
    return said


def bulk(board: WorkingBoard, actor: Actor, *names: str) -> list[str]:
    items: list[Any] = [{"type": "trial", "task_id": name} for name in names]
    return [outcome["status"] for outcome in take_many(board.board, actor, items)]


def stored(board: WorkingBoard) -> int:
    with board.board.db.read() as connection:
        return connection.execute(select(func.count()).select_from(tasks)).scalar_one()


def test_the_number_may_come_at_once_and_then_flows_in(board: WorkingBoard) -> None:
    assert put(board, SIX, *"abcdef") == ["created"] * 6
    with pytest.raises(OverRate) as refused:
        put(board, SIX, "g")
    assert 1 <= refused.value.retry_after <= 10
    assert "Nothing was stored" in str(refused.value)
    assert stored(board) == 6
    board.at(11)
    assert put(board, SIX, "g") == ["created"]
    with pytest.raises(OverRate):
        put(board, SIX, "h")
    assert put(board, FREE, *"hijk") == ["created"] * 4, "each key has its own"


def test_duplicates_are_free(board: WorkingBoard) -> None:
    put(board, SIX, *"abcdef")
    assert put(board, SIX, *"abcdef") == ["duplicate"] * 6
    assert bulk(board, SIX, *"abc") == ["duplicate"] * 3


def test_a_bulk_is_taken_whole_or_not_at_all_and_can_be_sent_again(board: WorkingBoard) -> None:
    assert bulk(board, SIX, *"abcd") == ["created"] * 4
    with pytest.raises(OverRate) as refused:
        bulk(board, SIX, *"cdefg")
    assert stored(board) == 4
    board.at(refused.value.retry_after + 1)
    assert bulk(board, SIX, *"cdefg") == ["duplicate"] * 2 + ["created"] * 3


def test_a_bulk_that_never_fits_says_how_many_do(board: WorkingBoard) -> None:
    with pytest.raises(NeverWithinRate, match="at most 6 at a time"):
        bulk(board, SIX, *"abcdefg")
    assert stored(board) == 0


def test_keys_without_a_rate_have_that_of_the_setting(working: OpenWorking) -> None:
    board = working(start=False, intake_rate="2/h")
    board.type(use="echo")
    assert put(board, FREE, "a", "b") == ["created"] * 2
    with pytest.raises(OverRate):
        put(board, FREE, "c")
    assert put(board, SIX, *"cdefgh") == ["created"] * 6
    person = Actor("person", "li@example.org", frozenset())
    assert put(board, person, "i", "j", "k") == ["created"] * 3, "a rate is for keys"


def test_two_processes_count_together(board: WorkingBoard, working: OpenWorking) -> None:
    boards = [board, working(start=False)]
    ten = key_actor("ten", ["submit"], "10/d")

    def one(number: int) -> int:
        try:
            put(boards[number % 2], ten, f"T-{number}")
        except OverRate:
            return 0
        return 1

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(one, range(30))) == 10
    assert stored(board) == 10
