"""Weights that people change while the board works, at once or for a part of the day: every claimer follows them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from board.access.rights import key_actor
from board.db.clock import read_now
from board.ports import Job, Outcome, Success
from board.queue import live
from board.queue.live import QueueRules
from board.worker.handing_out import WorkWanted
from tests.rig.working import Gate, OpenWorking, Probe, WorkingBoard

LOW_FIRST = [1, 1, 1, 21]
NOON = datetime(2031, 3, 5, 12, tzinfo=UTC)  # a Wednesday
BY_DAY = {"from": "11:00", "to": "13:00", "days": ["Wed"], "weights": LOW_FIRST}
BY_NIGHT = BY_DAY | {"from": "23:00", "to": "01:00"}

# What is set, and whether at noon P3 has its 21 turns after one of P0.
RULES = [({"weights": LOW_FIRST}, True), ({"windows": [BY_DAY]}, True), ({"windows": [BY_NIGHT]}, False)]


def change(board: WorkingBoard, rules: dict[str, Any]) -> None:
    with board.board.db.write() as tx:
        live.change(tx, "user:li", lambda _: QueueRules.model_validate(rules))


def to_noon(board: WorkingBoard) -> None:
    with board.board.db.read() as connection:
        board.at((NOON - read_now(connection)).total_seconds())


def put(board: WorkingBoard) -> None:
    for name, priority in [("low-0", "P3"), ("low-1", "P3"), ("rush-0", "P0"), ("rush-1", "P0")]:
        board.submit(name, priority=priority)


@pytest.mark.parametrize(("rules", "follows"), RULES)
def test_the_boards_own_worker(working: OpenWorking, rules: dict[str, Any], follows: bool) -> None:
    order: list[str] = []
    began, gate = Gate(), Gate()

    async def note(job: Job) -> Outcome:
        if job.task_id == "first":
            began.open()
            await gate.passed()
        order.append(job.task_id)
        return Success()

    board = working(Probe(note), concurrency=1, start=False)
    to_noon(board)
    board.start()
    board.type()
    board.submit("first", priority="P1")
    began.wait()
    consumer = board.board.consumer
    assert consumer is not None
    change(board, rules)
    board.until(lambda: consumer._claimer.rules is not None and consumer._claimer.rules != QueueRules())
    put(board)
    gate.open()
    for name in ("low-0", "low-1", "rush-0", "rush-1"):
        board.wait(name, "done")
    usual = ["rush-0", "rush-1", "low-0", "low-1"]
    assert order[1:] == (["rush-0", "low-0", "low-1", "rush-1"] if follows else usual)


@pytest.mark.parametrize(("rules", "follows"), RULES)
def test_an_outside_worker(working: OpenWorking, rules: dict[str, Any], follows: bool) -> None:
    board = working(start=False)
    to_noon(board)
    board.type(use="outside", handler={"side_effects": False})
    change(board, rules)
    put(board)
    n8n = key_actor("n8n", ["work"])
    order = [it.task["task_id"] for _ in range(4) for it in board.board.claims.take(n8n, WorkWanted("flow"))]
    usual = ["rush-0", "rush-1", "low-0", "low-1"]
    assert order == (["rush-0", "low-0", "low-1", "rush-1"] if follows else usual)
