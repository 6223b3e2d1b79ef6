"""A caller who waits on the line: the answer comes when the task has settled, or when his time is over."""

from __future__ import annotations

import time
from typing import Any

from fastapi import Request

from board.api.deps import in_thread
from board.following import look
from board.rooms import Board
from board.signals.callers import Caller
from board.tasks.states import Status

SETTLED = frozenset({Status.DONE, Status.NEEDS_REVIEW, Status.FAILED, Status.CANCELLED})
# A caller who has left is noticed within this time, seconds; until then he costs nothing.
GONE_SECONDS = 1.0


async def until_settled(
    board: Board, request: Request, caller: Caller, seconds: float, document: dict[str, Any]
) -> tuple[bool, dict[str, Any]]:
    """Whether the task settled in time, and the task object as it stands then. document: as it stood since the caller
    has followed it."""
    end = time.monotonic() + seconds
    while document["status"] not in SETTLED:
        left = end - time.monotonic()
        if left <= 0 or board.stopping.is_set():  # a server that goes down answers with what it knows
            return False, document
        heard = await caller.wait(min(GONE_SECONDS, left))
        if heard and caller.take()[0]:
            document = await in_thread(lambda: look(board, caller))
        elif await request.is_disconnected():
            return False, document
    return True, document
