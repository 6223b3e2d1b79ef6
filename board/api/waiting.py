"""A caller who waits on the line: the answer comes when the task has settled, or when his time is over."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from board.api.deps import in_thread
from board.rooms import Board
from board.tasks.ledger import find
from board.tasks.states import Status

SETTLED = frozenset({Status.DONE, Status.NEEDS_REVIEW, Status.FAILED, Status.CANCELLED})
# Looks at the row grow rarer: most results come at once or after seconds.
FIRST_LOOK, LONGEST_PAUSE = 0.02, 0.5


async def until_settled(
    board: Board, task_id: str, seconds: float, document: dict[str, Any]
) -> tuple[bool, dict[str, Any]]:
    """Whether the task settled in time, and the task object as it stands then."""
    end = time.monotonic() + seconds
    pause = FIRST_LOOK
    while document["status"] not in SETTLED:
        left = end - time.monotonic()
        if left <= 0 or board.stopping.is_set():  # a server that goes down answers with what it knows
            return False, document
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE)
        document = await in_thread(lambda: _look(board, task_id))
    return True, document


def _look(board: Board, task_id: str) -> dict[str, Any]:
    with board.db.read() as connection:
        row = find(connection, task_id)
        assert row is not None
        return board.task_document(connection, row)
