"""What callers ask for when they want to follow a task: by which answer, and from where on."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from board.access.rights import Act, Forbidden
from board.api.errors import ApiError
from board.api.strict import actor_of
from board.rooms import Board
from board.tasks.visible import NoSuchTask, visible

STREAM, JSON = "text/event-stream", "application/json"


def wants_stream(accept: str | None) -> bool:
    """Whether an Accept header prefers events to JSON: by q, then what is named before what is only meant by a
    wildcard, then what stands first."""
    best: dict[str, tuple[float, bool, int]] = {}
    for place, part in enumerate((accept or "").lower().split(",")):
        name, *parameters = (text.strip() for text in part.split(";"))
        named = name in (STREAM, JSON)
        kind = STREAM if name == STREAM else JSON if named or name in ("*/*", "application/*") else None
        rank = (_quality(parameters), named, -place)
        if kind is not None and rank > best.get(kind, (0.0, False, 0)) and rank[0] > 0:
            best[kind] = rank
    return STREAM in best and (JSON not in best or best[STREAM] > best[JSON])


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0


# How it stands in the description of the API.
DESCRIBED: dict[int | str, dict[str, Any]] = {
    200: {"description": "The task's events, live.", "content": {STREAM: {}}},
    204: {"description": "Nothing has happened since the end that was seen."},
}


def may_follow(board: Board, request: Request, task_id: str) -> bool:
    """Whether the key of a request is still good and may still see the task."""
    try:
        actor = actor_of(request)
        with board.db.read() as connection:
            visible(connection, actor, task_id, Act.READ)
    except (ApiError, Forbidden, NoSuchTask):
        return False
    return True
