"""What every router needs: the board, who asks, and lists in query parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BeforeValidator

from board.access.rights import Actor
from board.db.pages import DEFAULT_LIMIT, MAX_LIMIT
from board.rooms import Board
from board.tasks.bodies import Moment

CHANNEL = "api"
Result = TypeVar("Result")


def the_board(request: Request) -> Board:
    board = request.app.state.board
    assert isinstance(board, Board)
    return board


def the_actor(request: Request) -> Actor:
    """Who holds the key of this request; StrictRoute has found out before the body was read."""
    actor = request.state.actor
    assert isinstance(actor, Actor)
    return actor


TheBoard = Annotated[Board, Depends(the_board)]
TheActor = Annotated[Actor, Depends(the_actor)]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
When = Annotated[Moment | None, BeforeValidator(lambda text: text or None), Query()]
Cursor = Annotated[str | None, Query()]
Several = Annotated[str | None, Query(description="one value, or several separated by commas")]

__all__ = ["DEFAULT_LIMIT", "Cursor", "Limit", "Several", "TheActor", "TheBoard", "When"]


def split(text: str | None) -> tuple[str, ...]:
    """The values of a comma list."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


async def in_thread(work: Callable[[], Result]) -> Result:
    """Database work of an asynchronous route."""
    return await run_in_threadpool(work)
