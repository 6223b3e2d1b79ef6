"""A task that waits for a decision, and decisions that are refused."""

from typing import Any

import pytest

from board.access.rights import Actor, person_actor
from board.review.decide import DecisionRefused
from tests.rig.working import LI, WorkingBoard

ANNA = person_actor("anna@example.org", "reviewer")


def reviewed(board: WorkingBoard, **review: Any) -> None:
    """T-1 waits for a decision; what it echoes is its payload."""
    board.type("echo", use="echo", review={"when": "always", "grace": "0s"} | review)
    board.submit(type="echo", payload={"text": "Guten Tag"})
    board.wait("T-1", "needs_review")


def refused(board: WorkingBoard, verdict: str, actor: Actor = LI, task_id: str = "T-1", **more: Any) -> DecisionRefused:
    before = board.task(task_id), board.kinds(task_id)
    with pytest.raises(DecisionRefused) as error:
        board.decide(task_id, verdict, actor, **more)
    assert (board.task(task_id), board.kinds(task_id)) == before  # nothing was changed, nothing recorded
    return error.value
