"""When a task that a limit keeps back is expected to start: told where it can be known, and true."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from board.db.clock import read_now
from tests.queue.conformance.limiting import claim, end, limited, look_again
from tests.queue.test_gate_scale import BACKLOG, multiply
from tests.rig.working import OpenWorking, WorkingBoard
from tests.tasks.test_plans import plans


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    return working(start=False)


def waits(board: WorkingBoard, name: str, *, places: bool = True) -> dict[str, Any]:
    with board.board.db.read() as connection:
        row = board.task(name)
        answer: dict[str, Any] = board.board.waiting.of(connection, [row], places=places)[row["id"]]
    assert answer["code"] == "limit"
    return answer


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def now_of(board: WorkingBoard) -> datetime:
    with board.board.db.read() as connection:
        return read_now(connection)


def test_by_a_rate_each_is_expected_when_it_then_starts(board: WorkingBoard) -> None:
    limited(board, 6, rate="6/h")
    begin = now_of(board)
    assert claim(board) == ["T-0"]
    answers = [waits(board, f"T-{number}") for number in range(1, 6)]
    assert [answer["behind"] for answer in answers] == [0, 1, 2, 3, 4]
    assert all(answer["estimated"] for answer in answers)
    assert "Expected start by its rate" in answers[0]["message"]
    for number, answer in enumerate(answers, start=1):
        after = (moment(answer["expected_at"]) - begin).total_seconds()
        assert after == pytest.approx(600 * number, abs=10)
        board.at(after - 15)
        look_again(board)
        assert claim(board) == []
        board.at(after + 15)
        look_again(board)
        assert claim(board) == [f"T-{number}"]


def test_by_a_number_a_day_it_is_the_midnight_of_its_day(working: OpenWorking) -> None:
    board = working(start=False, timezone="Asia/Shanghai")
    noon = datetime(2031, 3, 4, 4, tzinfo=UTC)  # in Shanghai
    board.at((noon - now_of(board)).total_seconds())
    limited(board, 7, per_day=2)
    assert claim(board) == ["T-0", "T-1"]
    midnight = datetime(2031, 3, 4, 16, tzinfo=UTC)
    for number, days in ((2, 0), (3, 0), (4, 1), (5, 1), (6, 2)):
        answer = waits(board, f"T-{number}")
        assert moment(answer["expected_at"]) == midnight + timedelta(days=days)
        assert moment(answer["opens_at"]) == midnight


def test_where_an_end_decides_nobody_knows_and_nothing_is_told(board: WorkingBoard) -> None:
    limited(board, 5, concurrency=2, rate="100000/h")
    assert claim(board) == ["T-0", "T-1"]
    assert waits(board, "T-3") == {
        "code": "limit",
        "message": "The limit of the type trial is reached.",
        "limit": "type:trial",
        "behind": 1,
    }
    end(board, "T-0")
    assert "expected_at" in waits(board, "T-3"), "now its rate alone decides"


def test_other_answers_leave_place_and_estimate_out(board: WorkingBoard) -> None:
    limited(board, 3, rate="6/h")
    claim(board)
    assert set(waits(board, "T-2", places=False)) == {"code", "message", "limit", "opens_at"}


def test_days_ahead(board: WorkingBoard) -> None:
    limited(board, 6, rate="1/d", per_day=1)
    claim(board)
    answer = waits(board, "T-5")
    assert moment(answer["expected_at"]) - now_of(board) > timedelta(days=4)


def test_the_place_among_a_hundred_thousand_is_read_from_the_index(board: WorkingBoard) -> None:
    limited(board, 2, rate="6/h")
    assert claim(board) == ["T-0"]
    multiply(board, "T-1", BACKLOG)
    with plans(board.board.db, "held_by =") as seen:
        answer = waits(board, f"T-1-{BACKLOG}")
    assert (answer["behind"], answer["more"]) == (1000, True)
    assert "expected_at" not in answer
    assert seen
    for plan in seen:
        assert "ix_tasks_held" in plan, plan
        assert "Seq Scan" not in plan, plan
