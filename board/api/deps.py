"""What every router needs: the board, who asks, and lists in query parameters.

What is no database work is asynchronous: FastAPI runs every plain function in a thread, which costs more than all that
these do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from fastapi import Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BeforeValidator

from board.access.rights import Act, Actor
from board.db.pages import DEFAULT_LIMIT, MAX_LIMIT
from board.review.policy import may_decide
from board.rooms import Board
from board.tasks.bodies import Moment

CHANNEL = "api"
Result = TypeVar("Result")


async def the_board(request: Request) -> Board:
    board = request.app.state.board
    assert isinstance(board, Board)
    return board


async def the_actor(request: Request) -> Actor:
    return _actor(request)


def _actor(request: Request) -> Actor:
    """Who holds the key of this request; StrictRoute has found out before the body was read."""
    actor = request.state.actor
    assert isinstance(actor, Actor)
    return actor


TheBoard = Annotated[Board, Depends(the_board)]
TheActor = Annotated[Actor, Depends(the_actor)]


def _who_may(act: Act) -> Callable[[Request], Awaitable[Actor]]:
    async def check(request: Request) -> Actor:  # not of TheActor: each step of a dependency costs as much as its work
        actor = _actor(request)
        actor.require(act)
        return actor

    return check


async def _who_decides(actor: TheActor) -> Actor:
    may_decide(actor)
    return actor


# Whoever may not do something at all is told so before anything is said about his body.
TheAdmin = Annotated[Actor, Depends(_who_may(Act.ADMIN))]
TheOperator = Annotated[Actor, Depends(_who_may(Act.OPERATE))]
TheSubmitter = Annotated[Actor, Depends(_who_may(Act.SUBMIT))]
TheUploader = Annotated[Actor, Depends(_who_may(Act.UPLOAD))]
TheWorker = Annotated[Actor, Depends(_who_may(Act.WORK))]
TheReviewer = Annotated[Actor, Depends(_who_decides)]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
When = Annotated[Moment | None, BeforeValidator(lambda text: text or None), Query()]
Cursor = Annotated[str | None, Query()]
Several = Annotated[str | None, Query(description="one value, or several separated by commas")]

__all__ = [
    "DEFAULT_LIMIT",
    "Cursor",
    "Limit",
    "Several",
    "TheActor",
    "TheAdmin",
    "TheBoard",
    "TheOperator",
    "TheReviewer",
    "TheSubmitter",
    "TheUploader",
    "TheWorker",
    "When",
]


def split(text: str | None) -> tuple[str, ...]:
    """The values of a comma list."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


async def in_thread(work: Callable[[], Result]) -> Result:
    """Database work of an asynchronous route."""
    return await run_in_threadpool(work)
