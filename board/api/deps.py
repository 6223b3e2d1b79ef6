"""What every router needs: the board, who asks, and lists in query parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import Connection, RowMapping

from board.access import keys
from board.access.rights import Act, Actor
from board.api.errors import ApiError
from board.db.pages import DEFAULT_LIMIT, MAX_LIMIT
from board.rooms import Board
from board.tasks.ids import BadTaskId, canonical
from board.tasks.ledger import find

CHANNEL = "api"
Result = TypeVar("Result")


def the_board(request: Request) -> Board:
    board = request.app.state.board
    assert isinstance(board, Board)
    return board


def the_actor(request: Request, board: Annotated[Board, Depends(the_board)]) -> Actor:
    """Who holds the key of this request. 401 without one that is known."""
    secret = keys.bearer(request.headers.get("authorization"), request.headers.get("x-api-key"))
    if secret is None:
        raise ApiError(401, "unauthorized", "Send an API key as `Authorization: Bearer KEY` or `X-API-Key: KEY`.")
    with board.db.read() as connection:
        actor = keys.find(connection, secret, board.settings.bootstrap_api_key)
    if actor is None:
        raise ApiError(
            401, "unauthorized", "This API key is unknown or was revoked. Make one with `board keys create`."
        )
    return actor


TheBoard = Annotated[Board, Depends(the_board)]
TheActor = Annotated[Actor, Depends(the_actor)]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
Cursor = Annotated[str | None, Query()]
Several = Annotated[str | None, Query(description="one value, or several separated by commas")]

__all__ = ["DEFAULT_LIMIT", "Cursor", "Limit", "Several", "TheActor", "TheBoard"]


def split(text: str | None) -> tuple[str, ...]:
    """The values of a comma list."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def the_task(connection: Connection, actor: Actor, task_id: str, act: Act = Act.READ) -> RowMapping:
    """The task's row. 404 when there is none, also when this actor may not even know of it."""
    try:
        row = find(connection, canonical(task_id))
    except BadTaskId:
        row = None
    if row is None:
        raise ApiError(404, "task_not_found", f"There is no task “{task_id[:200]}”.")
    own = row["requester"] == actor.identity
    if not actor.may(Act.READ, own=own):
        raise ApiError(404, "task_not_found", f"There is no task “{task_id[:200]}”.")
    actor.require(act, own=own)
    return row


async def in_thread(work: Callable[[], Result]) -> Result:
    """Database work of an asynchronous route."""
    return await run_in_threadpool(work)
