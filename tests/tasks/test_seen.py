"""Many bodies of one call are checked against one look at the database."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from board.tasks.bodies import TaskIn
from board.tasks.intake import Problem
from tests.rig.working import CALLER, OpenWorking, WorkingBoard

BODIES = [TaskIn(type="trial", payload={"n": number}) for number in range(20)]


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    board = working(start=False)
    board.type(use="echo", task_id="trial {{ payload.n }} {{ today }}")
    return board


def test_the_type_and_the_time_are_asked_for_once(board: WorkingBoard) -> None:
    sent: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        sent.append(statement)

    with board.board.db.read() as connection:
        seen = board.board.intake.look(connection)
        board.board.intake.prepare(connection, BODIES[0], CALLER, seen=seen)
        event.listen(connection, "before_cursor_execute", note)
        rows = [board.board.intake.prepare(connection, body, CALLER, seen=seen) for body in BODIES]
        assert sent == []
        assert board.board.intake.prepare(connection, BODIES[0], CALLER) == rows[0]
        assert len(sent) == 2
    assert {row["type_version"] for row in rows} == {1}


def test_another_look_sees_a_new_version_and_a_type_that_has_come(board: WorkingBoard) -> None:
    board.type(use="echo", task_id="trial {{ payload.n }}")
    intake = board.board.intake
    with board.board.db.read() as connection:
        assert intake.prepare(connection, BODIES[0], CALLER, seen=intake.look(connection))["type_version"] == 2
    late = TaskIn(type="late")
    with board.board.db.read() as connection, pytest.raises(Problem, match="late"):
        intake.prepare(connection, late, CALLER, seen=intake.look(connection))
    board.type("late", use="echo")
    with board.board.db.read() as connection:
        assert intake.prepare(connection, late, CALLER, seen=intake.look(connection))["type_version"] == 1
