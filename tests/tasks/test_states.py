"""The legal moves, checked against the table of the design; written out here once more, on purpose."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from board.tasks import states
from board.tasks.states import READY, RULES, TERMINAL, Actor, IllegalMove, Move, Phase, Status, after, legal

WORK, ACT = "work", "act"
# move, from (status, phases), to, phase afterwards (None: the same)
TABLE = [
    (Move.CLAIM, "pending retrying", (WORK, ACT), "running", None),
    (Move.SUCCEED, "running", (WORK, ACT), "done", None),
    (Move.PROCEED, "running", (WORK,), "pending", ACT),
    (Move.ASK, "running", (WORK, ACT), "needs_review", None),
    (Move.ASK_UNKNOWN, "running", (WORK, ACT), "needs_review", None),
    (Move.RETRY, "running", (WORK, ACT), "retrying", None),
    (Move.RECONCILE, "running", (WORK, ACT), "retrying", None),
    (Move.FAIL, "running", (WORK, ACT), "failed", None),
    (Move.HAND_BACK, "running", (WORK, ACT), "pending", None),
    (Move.RESCUE, "running", (WORK, ACT), "retrying", None),
    (Move.GIVE_UP, "running", (WORK, ACT), "failed", None),
    (Move.STOP, "running", (WORK, ACT), "cancelled", None),
    (Move.APPROVE, "needs_review", (WORK,), "pending", ACT),
    (Move.ANSWER, "needs_review", (WORK,), "pending", None),
    (Move.FINISH, "pending", (ACT,), "done", None),
    (Move.REVISE, "needs_review", (WORK, ACT), "pending", WORK),
    (Move.REJECT, "needs_review", (WORK, ACT), "cancelled", None),
    (Move.EXPIRE, "needs_review", (WORK, ACT), "cancelled", None),
    (Move.EXPIRE_FAILED, "needs_review", (WORK, ACT), "failed", None),
    (Move.UNDO_APPROVE, "pending", (ACT,), "needs_review", WORK),
    (Move.UNDO_REJECT, "cancelled", (WORK, ACT), "needs_review", None),
    (Move.HAPPENED, "needs_review", (WORK, ACT), "done", None),
    (Move.HAPPENED_GO_ON, "needs_review", (WORK,), "pending", ACT),
    (Move.SEND_AGAIN, "needs_review", (WORK, ACT), "pending", None),
    (Move.DROP, "needs_review", (WORK, ACT), "cancelled", None),
    (Move.CANCEL, "pending retrying needs_review", (WORK, ACT), "cancelled", None),
    (Move.REQUEUE, "failed cancelled", (WORK, ACT), "pending", None),
    (Move.REQUEUE_WORK, "failed cancelled", (WORK, ACT), "pending", WORK),
    (Move.RUN_NOW, "retrying", (WORK, ACT), "pending", None),
]


def test_there_are_seven_statuses() -> None:
    assert {str(status) for status in Status} == {
        "pending",
        "running",
        "needs_review",
        "retrying",
        "done",
        "failed",
        "cancelled",
    }


def test_the_table_names_every_move() -> None:
    assert {entry[0] for entry in TABLE} | {Move.CREATE} == set(Move) == set(RULES)


@pytest.mark.parametrize(("move", "sources", "phases", "to", "to_phase"), TABLE, ids=lambda value: str(value)[:30])
def test_a_move_starts_only_where_the_table_says(
    move: Move, sources: str, phases: tuple[str, ...], to: str, to_phase: str | None
) -> None:
    for status in Status:
        for phase in Phase:
            if status in sources.split() and phase in phases:
                assert after(move, status, phase) == (to, to_phase or phase)
            else:
                with pytest.raises(IllegalMove, match=f"A task that is {status} cannot"):
                    after(move, status, phase)


def test_done_is_left_by_nobody() -> None:
    for actor in Actor:
        for phase in Phase:
            assert legal(Status.DONE, phase, actor) == []


def test_terminal_and_ready() -> None:
    assert {"done", "failed", "cancelled"} == TERMINAL
    assert {"pending", "retrying"} == READY


@pytest.mark.parametrize(
    ("status", "phase", "actor", "moves"),
    [
        ("pending", WORK, Actor.CALLER, {"cancel"}),
        ("failed", WORK, Actor.OPERATOR, {"requeue", "requeue_work"}),
        ("retrying", WORK, Actor.OPERATOR, {"cancel", "run_now"}),
        ("retrying", WORK, Actor.CALLER, {"cancel"}),
        ("running", WORK, Actor.OPERATOR, set()),
        ("running", WORK, Actor.SWEEP, {"ask_unknown", "rescue", "give_up", "stop"}),
        ("pending", ACT, Actor.TIMER, {"finish"}),
        ("pending", WORK, Actor.TIMER, set()),
        ("pending", ACT, Actor.REVIEWER, {"undo_approve"}),
        ("cancelled", WORK, Actor.REVIEWER, {"undo_reject"}),
    ],
)
def test_who_may_move(status: str, phase: str, actor: Actor, moves: set[str]) -> None:
    assert {str(move) for move in legal(Status(status), Phase(phase), actor)} == moves


def test_the_states_import_nothing_of_ours() -> None:
    tree = ast.parse(Path(states.__file__).read_text(encoding="utf-8"))
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    named |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert named == {"__future__", "dataclasses", "enum"}
