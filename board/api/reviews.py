"""/reviews and the answers to unknown outcomes: where decisions come in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from board.access.rights import Act, Actor
from board.api.deps import CHANNEL, DEFAULT_LIMIT, Cursor, Limit, Several, TheActor, TheBoard, TheReviewer, split
from board.api.errors import ApiError, field_error
from board.api.strict import StrictRoute, listing, ok
from board.review import read
from board.review.decide import Verdict
from board.review.filters import Asked
from board.rooms import Board
from board.tasks.read import attempt_document, attempts_of, by_internal_id, by_internal_ids
from board.tasks.view import data_of_many

router = APIRouter(tags=["reviews"], route_class=StrictRoute)

_ID = re.compile("[0-9]{1,18}")  # fits 64 bits
Words = Annotated[str | None, Field(max_length=10_000)]


class DecisionIn(BaseModel):
    """version and content_hash are those of the review that was shown."""

    model_config = ConfigDict(extra="forbid")

    verdict: str
    version: int | None = None
    content_hash: str | None = None
    instruction: Words = None
    reason: Words = None
    reason_class: Literal["wrong", "incomplete", "policy", "duplicate", "other"] | None = None
    edits: dict[str, Any] | None = None
    action: Annotated[str | None, Field(max_length=200, description="verdict `answer`: an id of `form.actions`")] = None
    inputs: Annotated[dict[str, Any] | None, Field(description="verdict `answer`: all of `form.fields`, by name")] = (
        None
    )
    idempotency_key: Annotated[str | None, Field(max_length=200)] = None


@router.get("/reviews")
def list_reviews(
    request: Request,
    board: TheBoard,
    actor: TheActor,
    status: Annotated[Literal["open", "snoozed", "decided"], Query()] = "open",
    type: Several = None,
    risk: Several = None,
    reason: Several = None,
    due: str = "",
    mine: bool = False,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> JSONResponse:
    """Reviews with their tasks: open ones in the inbox's order, those put aside, or decided ones, the latest first.

    due: overdue, today, none, or a time: due by then. mine: of the tasks assigned to you or to a group of yours.
    """
    actor.require(Act.READ)
    asked = Asked(split(type), split(risk), split(reason), due, mine)
    with board.db.read() as connection:
        wanted = asked.wanted(connection, actor, board.settings.timezone)
        page = read.inbox(connection, status=status, wanted=wanted, cursor=cursor, limit=limit)
        data = _documents(board, connection, page.rows, actor)
    return listing(data, page.next_cursor, request)


@router.get("/reviews/{review_id}")
def get_review(review_id: str, board: TheBoard, actor: TheActor) -> JSONResponse:
    """One review with its task, attempts and all that a decision needs."""
    actor.require(Act.READ)
    with board.db.read() as connection:
        return ok(_document(board, connection, _review(connection, review_id), actor))


@router.post("/reviews/{review_id}/decision")
def post_decision(review_id: str, body: DecisionIn, board: TheBoard, actor: TheReviewer) -> JSONResponse:
    """Decide. The same decision by the same actor again is answered 200 with `repeated: true`."""
    if body.version is None or body.content_hash is None:
        missing = "version" if body.version is None else "content_hash"
        raise field_error(missing, f"{missing} is missing; send the one of the review that was shown.", "invalid_field")
    return decide(board, actor, number_of(review_id), body)


@router.post("/reviews/{review_id}/undo")
def undo(review_id: str, board: TheBoard, actor: TheActor) -> JSONResponse:
    """Take your approval or rejection back inside its grace time, before anything was sent."""
    with board.db.write() as tx:
        board.decisions.undo(tx, number_of(review_id), actor, CHANNEL)
    return _task_answer(board, number_of(review_id), repeated=False)


def decide(board: Board, actor: Actor, review_id: int, body: DecisionIn) -> JSONResponse:
    """One decision through the one door for all of them; answered with the task."""
    if body.verdict in ("happened", "not_happened", "drop"):
        with board.db.read() as connection:
            announced = _review(connection, str(review_id))["operation"] is not None
        if announced:
            raise ApiError(422, "verdict_not_offered", "Answer an unknown outcome with POST /operations/{id}/resolve.")
    verdict = Verdict(
        body.verdict,
        version=body.version,
        content_hash=body.content_hash,
        instruction=body.instruction,
        reason=body.reason,
        reason_class=body.reason_class,
        idempotency_key=body.idempotency_key,
        edits=body.edits,
        action=body.action,
        inputs=body.inputs,
    )
    with board.db.write() as tx:
        repeated = board.decisions.decide(tx, review_id, verdict, actor, CHANNEL)
    return _task_answer(board, review_id, repeated=repeated)


def _task_answer(board: Board, review_id: int, *, repeated: bool) -> JSONResponse:
    with board.db.read() as connection:
        review = read.by_id(connection, review_id)
        assert review is not None
        document = board.task_document(connection, by_internal_id(connection, review["task"]))
    return ok(document | ({"repeated": True} if repeated else {}))


def number_of(review_id: str) -> int:
    if not _ID.fullmatch(review_id):
        raise ApiError(404, "not_found", "There is no such review.")
    return int(review_id)


def _review(connection: Any, review_id: str) -> Any:
    row = read.by_id(connection, number_of(review_id))
    if row is None:
        raise ApiError(404, "not_found", "There is no such review.")
    return row


def document_of(board: Board, connection: Any, review_id: str, actor: Actor) -> dict[str, Any]:
    return _document(board, connection, _review(connection, review_id), actor)


def _document(board: Board, connection: Any, row: Any, actor: Actor) -> dict[str, Any]:
    [document] = _documents(board, connection, [row], actor)
    asked = read.instructions(connection, row["task"])
    attempts = attempts_of(connection, row["task"])
    return document | {
        "attempts": [attempt_document(item) | {"instruction": asked.get(item["round"])} for item in attempts]
    }


def _documents(board: Board, connection: Any, rows: Sequence[Any], actor: Actor) -> list[dict[str, Any]]:
    """What they share is read at once: a page of the list asks the database as often as one review does."""
    ids = [row["task"] for row in rows]
    task_rows, data = by_internal_ids(connection, ids), data_of_many(connection, ids)
    tasks = board.task_documents(connection, [task_rows[task] for task in ids])
    return [
        read.document(connection, board.catalogue, row, task_rows[row["task"]], task, actor, data[row["task"]])
        for row, task in zip(rows, tasks, strict=True)
    ]
