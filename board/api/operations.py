"""/operations: the ledger of side effects. Programs announce their calls; people answer for unknown outcomes."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from board.access.rights import Act, Actor
from board.api.deps import (
    CHANNEL,
    DEFAULT_LIMIT,
    Cursor,
    Limit,
    Several,
    TheActor,
    TheBoard,
    TheReviewer,
    TheWorker,
    split,
)
from board.api.errors import field_error
from board.api.strict import StrictRoute, listing, ok
from board.db.clock import read_now
from board.effects import journal, operations
from board.effects import listing as ledger
from board.effects.listing import STATUSES, Filter
from board.effects.operations import MAX_KEY
from board.effects.resend import resend
from board.effects.steps import NoSuchOperation, Step, To
from board.effects.view import entry_document, operation_document, try_document
from board.review.decide import Verdict
from board.review.visits import open_review
from board.rooms import Board
from board.tasks.read import by_internal_id
from board.worker.outside_calls import Wish

router = APIRouter(prefix="/operations", tags=["operations"], route_class=StrictRoute)

_ID = re.compile("[0-9]{1,18}")  # fits 64 bits


def _plain(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError("use printable characters, without spaces at the ends")
    return text


def _number(value: Any) -> Any:
    """Numbers of other systems come as numbers, too."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Reference = Annotated[str, BeforeValidator(_number), Field(min_length=1, max_length=1000)]
Execution = Annotated[str, BeforeValidator(_number), Field(min_length=1, max_length=200)]


class OperationIn(BaseModel):
    """key: the business action, the same whoever does it. request_hash: of its content, such as a SHA-256 in hex."""

    model_config = ConfigDict(extra="forbid")

    key: Annotated[str, Field(min_length=1, max_length=MAX_KEY), AfterValidator(_plain)]
    target: Annotated[str, Field(min_length=1, max_length=500)]
    request_hash: Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_plain)]
    task_id: str | None = None
    execution_id: Execution | None = None


class StepIn(BaseModel):
    """message: why it was refused, or what is not known. execution_id: checked against the one that reserved."""

    model_config = ConfigDict(extra="forbid")

    external_reference: Reference | None = None
    message: Annotated[str | None, Field(max_length=10_000)] = None
    execution_id: Execution | None = None


class ResolveIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    outcome: Literal["happened", "not_happened", "drop"]
    reason: Annotated[str, Field(min_length=1, max_length=10_000)]
    external_reference: Reference | None = None
    result: Any = None


class ResendIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: Annotated[str | None, Field(max_length=2000)] = None


@router.post("")
def announce(body: OperationIn, board: TheBoard, actor: TheWorker) -> JSONResponse:
    """Announce a call before you make it. 201: reserved, go ahead. 200: what is recorded, and whether to go ahead."""
    made = board.outside_calls.reserve(
        actor, Wish(body.key, body.target, body.request_hash, body.task_id or None, body.execution_id)
    )
    document = _documents(board, [made.operation])[0]
    return ok(document | {"go_ahead": made.go_ahead, "message": made.message}, 201 if made.made else 200)


@router.get("")
def list_operations(
    request: Request,
    board: TheBoard,
    actor: TheActor,
    status: Several = None,
    kind: Several = None,
    owner: Annotated[str | None, Query(description="the outside program, such as key:n8n")] = None,
    task_id: Annotated[str | None, Query()] = None,
    key: Annotated[str | None, Query()] = None,
    in_question: Annotated[bool, Query(description="only what waits for a person's word")] = False,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> JSONResponse:
    """Operations, the latest first. A key of scope work alone sees those it has announced itself."""
    statuses = split(status)
    for name in statuses:
        if name not in STATUSES:
            raise field_error(
                "status", f"“{name[:40]}” is no status; there are: {', '.join(STATUSES)}.", "invalid_field"
            )
    if not actor.may(Act.READ):
        actor.require(Act.WORK)
        owner = actor.identity
    wanted = Filter(statuses, split(kind), owner or None, task_id or None, key or None, in_question)
    with board.db.read() as connection:
        page = ledger.found(connection, wanted, cursor=cursor, limit=limit)
        moment = read_now(connection)
    return listing([operation_document(row, moment) for row in page.rows], page.next_cursor, request)


@router.get("/{operation_id}")
def get_operation(operation_id: str, board: TheBoard, actor: TheActor) -> JSONResponse:
    """One operation with everything that is known of it: its tries, and who said what."""
    with board.db.read() as connection:
        row = operations.by_id(connection, _id(operation_id))
        if row is None or not _may_see(actor, row["owner"]):
            raise NoSuchOperation(operation_id)
        review = open_review(connection, row["task"]) if row["task"] is not None else None
        asks = review is not None and review["operation"] == row["id"]
        document = operation_document(row, read_now(connection)) | {
            "review_id": str(review["id"]) if review is not None and asks else None,
            "deliveries": [try_document(item) for item in ledger.tries(connection, row["id"])],
            "events": [entry_document(item) for item in journal.entries(connection, row["id"])],
        }
    return ok(document)


@router.post("/{operation_id}/sent")
def sent(operation_id: str, board: TheBoard, actor: TheWorker, body: StepIn | None = None) -> JSONResponse:
    """The call has left your hands."""
    return _step(board, actor, operation_id, "sent", body)


@router.post("/{operation_id}/confirm")
def confirm(operation_id: str, board: TheBoard, actor: TheWorker, body: StepIn | None = None) -> JSONResponse:
    """It happened. `external_reference`: the other system's own number of it."""
    return _step(board, actor, operation_id, "confirmed", body)


@router.post("/{operation_id}/reject")
def reject(operation_id: str, board: TheBoard, actor: TheWorker, body: StepIn | None = None) -> JSONResponse:
    """It certainly did not happen. The key may be reserved again."""
    return _step(board, actor, operation_id, "rejected", body)


@router.post("/{operation_id}/unknown")
def unknown(operation_id: str, board: TheBoard, actor: TheWorker, body: StepIn | None = None) -> JSONResponse:
    """It was sent, and you cannot tell whether it happened. A person is asked."""
    return _step(board, actor, operation_id, "unknown", body)


@router.post("/{operation_id}/resend")
def send_again(operation_id: str, board: TheBoard, actor: TheActor, body: ResendIn | None = None) -> JSONResponse:
    """Send a callback again, now, under the same webhook-id and with the same bytes."""
    with board.db.write() as tx:
        row = resend(tx, actor, operation_id, CHANNEL, body.reason if body else None)
        board.wake_outbox(tx)
    return ok(_documents(board, [row])[0])


@router.post("/{operation_id}/resolve")
def resolve(operation_id: str, body: ResolveIn, board: TheBoard, actor: TheReviewer) -> JSONResponse:
    """Say what became of an operation whose outcome nobody could tell. Answered with its task, where it has one."""
    verdict = Verdict(body.outcome, reason=body.reason, reference=body.external_reference, result=body.result)
    with board.db.write() as tx:
        resolved = board.resolutions.resolve(tx, _id(operation_id), verdict, actor, CHANNEL)
    repeated = {"repeated": True} if resolved.repeated else {}
    operation = _documents(board, [resolved.operation])[0]
    if resolved.operation["task"] is None:
        return ok(operation | repeated)
    with board.db.read() as connection:
        document = board.task_document(connection, by_internal_id(connection, resolved.operation["task"]))
    return ok(document | {"operation": operation} | repeated)


def _step(board: Board, actor: Actor, operation_id: str, to: To, body: StepIn | None) -> JSONResponse:
    said = body or StepIn()
    step = Step(to, said.external_reference, said.message, said.execution_id)
    row, repeated = board.outside_calls.step(actor, _id(operation_id), step)
    return ok(_documents(board, [row])[0] | ({"repeated": True} if repeated else {}))


def _documents(board: Board, rows: list[Any]) -> list[dict[str, Any]]:
    with board.db.read() as connection:
        moment = read_now(connection)
    return [operation_document(row, moment) for row in rows]


def _may_see(actor: Actor, owner: str | None) -> bool:
    return actor.may(Act.READ) or (actor.may(Act.WORK) and owner == actor.identity)


def _id(operation_id: str) -> int:
    """The number of an operation; one that cannot exist finds none."""
    if not _ID.fullmatch(operation_id):
        raise NoSuchOperation(operation_id)
    return int(operation_id)
