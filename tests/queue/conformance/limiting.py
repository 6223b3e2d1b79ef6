"""Claims on a board with limits, and what became of them."""

from __future__ import annotations

from typing import Any

from board.queue.wanted import Scope, Wanted
from board.tasks.claiming import Lease
from board.tasks.states import Move
from tests.heart import WORKER
from tests.queue.conftest import settle
from tests.rig.working import WorkingBoard


def claim(board: WorkingBoard, slots: int = 10, worker: str = "w1", **scope: Any) -> list[str]:
    """The ids of what a claimer with so many free slots takes, who asks until there is nothing, as the consumer does.
    What a limit lets in reaches Redis only behind the claim that has let it in, and then wakes who has asked."""
    taken: list[str] = []

    def ask() -> bool:
        settle(board)
        free = slots - len(taken)
        wanted = Wanted(scope=Scope(**scope), slots=free, rest=free, worker=worker, lease=60)
        found = [row["task_id"] for row in board.board.queue.claim(wanted).rows]
        taken.extend(found)
        return bool(found)

    while len(taken) < slots and (ask() or ask()):
        pass
    return taken


def look_again(board: WorkingBoard) -> None:
    """With the next claim all limits are looked at, as once a second: the clock of a test jumps."""
    board.board.gate._looks.clear()


def end(board: WorkingBoard, *names: str, move: Move = Move.SUCCEED, **changes: Any) -> None:
    for name in names:
        row = board.task(name)
        with board.board.db.write() as tx:
            lease = Lease(row["id"], row["lease_token"])
            assert board.board.ledger.settle(tx, lease, move, WORKER, changes=changes, details={"reason": "sample"})


def limited(board: WorkingBoard, number: int = 6, name: str = "trial", use: str = "echo", **limits: Any) -> list[str]:
    """A type with limits and so many tasks of it, T-0 first."""
    board.type(name, use=use, limits=limits)
    return [board.submit(f"T-{n}", type=name) for n in range(number)]


def held(board: WorkingBoard, *names: str) -> list[str | None]:
    return [board.task(name)["held_by"] for name in names]
