"""/workers: which processes take work, whether they are alive, and what they run."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from board.access.rights import Act
from board.api.deps import DEFAULT_LIMIT, Cursor, Limit, TheActor, TheBoard
from board.api.strict import StrictRoute, listing
from board.tasks.view import time
from board.worker import presence

router = APIRouter(prefix="/workers", tags=["workers"], route_class=StrictRoute)


@router.get("")
def list_workers(
    request: Request, board: TheBoard, actor: TheActor, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> JSONResponse:
    """Every worker that was seen within a day, the youngest first: alive, silent or stopped."""
    actor.require(Act.READ)
    with board.db.read() as connection:
        page, rows = presence.listed(connection, cursor, limit)
    return listing([_shown(row) for row in rows], page.next_cursor, request)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {key: time(value) if key.endswith("_at") else value for key, value in row.items()}
