"""What people do with a review before they decide, and comments on its task."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from board.access.rights import Act, Actor
from board.api.deps import CHANNEL, DEFAULT_LIMIT, Cursor, Limit, TheActor, TheBoard, TheReviewer
from board.api.reviews import document_of, number_of
from board.api.strict import StrictRoute, listing, ok
from board.review import mentions, standing
from board.rooms import Board
from board.tasks.bodies import Moment
from board.tasks.history import notes_of, notes_page
from board.tasks.view import time
from board.tasks.visible import visible

router = APIRouter(tags=["reviews"], route_class=StrictRoute)
Text = Annotated[str, Field(min_length=1, max_length=10_000)]


class ClaimIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    take_over: bool = False
    note: Annotated[str | None, Field(max_length=2000)] = None


class SnoozeIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    until: Moment | None


class AssignIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    assignee: Annotated[str | None, Field(max_length=200)]


class CommentIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: Text


@router.post("/reviews/{review_id}/claim")
def claim(review_id: str, board: TheBoard, actor: TheReviewer, body: ClaimIn | None = None) -> JSONResponse:
    """Take it for ten minutes; again: ten more. `take_over`: from whoever has it, with a note."""
    given = body or ClaimIn()
    with board.db.write() as tx:
        board.holding.claim(tx, number_of(review_id), actor, CHANNEL, take_over=given.take_over, note=given.note)
    return _answer(board, actor, review_id)


@router.post("/reviews/{review_id}/release")
def release(review_id: str, board: TheBoard, actor: TheReviewer) -> JSONResponse:
    """Give it back."""
    with board.db.write() as tx:
        board.holding.release(tx, number_of(review_id), actor, CHANNEL)
    return _answer(board, actor, review_id)


@router.post("/reviews/{review_id}/snooze")
def snooze(review_id: str, body: SnoozeIn, board: TheBoard, actor: TheReviewer) -> JSONResponse:
    """Put it aside until a time; null: back at once."""
    with board.db.write() as tx:
        board.holding.snooze(tx, number_of(review_id), body.until, actor, CHANNEL)
    return _answer(board, actor, review_id)


@router.post("/reviews/{review_id}/assign")
def assign(review_id: str, body: AssignIn, board: TheBoard, actor: TheReviewer) -> JSONResponse:
    """Give its task to a person (mail address), a group, or nobody (null)."""
    with board.db.write() as tx:
        board.holding.assign(tx, number_of(review_id), body.assignee, actor, CHANNEL)
    return _answer(board, actor, review_id)


@router.post("/reviews/{review_id}/comment", status_code=201)
def comment(review_id: str, body: CommentIn, board: TheBoard, actor: TheActor) -> JSONResponse:
    """Write a comment into the history of its task."""
    with board.db.write() as tx:
        board.holding.comment(tx, number_of(review_id), body.text, actor, CHANNEL)
    return _answer(board, actor, review_id, 201)


@router.get("/tasks/{task_id}/comments")
def list_comments(
    task_id: str,
    request: Request,
    board: TheBoard,
    actor: TheActor,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> JSONResponse:
    """The last comments on a task, oldest first: what people, programs and agents have noted. The next page has those
    before."""
    with board.db.read() as connection:
        row = visible(connection, actor, task_id)
        page = notes_page(connection, row["id"], cursor, limit)
    return listing([_comment(event) for event in page.rows], page.next_cursor, request)


@router.post("/tasks/{task_id}/comments", status_code=201)
def post_comment(task_id: str, body: CommentIn, board: TheBoard, actor: TheActor) -> JSONResponse:
    """Write a comment into the history of a task."""
    with board.db.write() as tx:
        row = visible(tx, actor, task_id)
        if not actor.may_operate(dict(row)):
            standing.may_speak(actor)
        mentions.comment(tx, row["id"], body.text, actor.by(CHANNEL))
        [event] = notes_of(tx, row["id"], 1)
    return ok(_comment(event), 201)


def _comment(event: Any) -> dict[str, Any]:
    return {
        "id": event["seq"],
        "at": time(event["at"]),
        "by": f"{'user' if event['actor_kind'] == 'person' else event['actor_kind']}:{event['actor_name']}",
        "channel": event["channel"],
        "text": event["note"],
        "mentions": (event["data"] or {}).get("mentions", []),
    }


def _answer(board: Board, actor: Actor, review_id: str, status: int = 200) -> JSONResponse:
    actor.require(Act.READ)
    with board.db.read() as connection:
        return ok(document_of(board, connection, review_id, actor), status)
