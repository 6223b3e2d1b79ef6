"""What can be done with a task: cancel, requeue, run now, acknowledge; and the shorthand for deciding its review."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from board.access.rights import Act
from board.api.deps import CHANNEL, TheActor, TheBoard
from board.api.errors import ApiError
from board.api.reviews import DecisionIn, decide
from board.api.strict import StrictRoute, listing, ok
from board.effects import shown
from board.review.visits import latest_review
from board.signals.signal import Call
from board.tasks import acknowledge as acknowledging
from board.tasks import intake, runnow
from board.tasks.visible import visible

router = APIRouter(prefix="/tasks/{task_id}", tags=["tasks"], route_class=StrictRoute)

Reason = Annotated[str | None, Field(max_length=2000)]


class ActIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: Reason = None


class RequeueIn(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    reason: Reason = None
    from_: Literal["work"] | None = Field(default=None, alias="from")
    type_version: Literal["current", "original"] = "current"


class ShorthandIn(DecisionIn):
    """The body of a decision, with the verdict in the address."""

    verdict: str = ""


@router.post("/cancel")
def cancel(task_id: str, board: TheBoard, actor: TheActor, body: ActIn | None = None) -> JSONResponse:
    """Cancel. A running task is asked to stop and becomes cancelled as soon as it has; its late result is refused."""
    with board.db.write() as tx:
        row = visible(tx, actor, task_id, Act.OPERATE)
        board.ledger.cancel(tx, board.ledger.lock(tx, row["id"]), actor.by(CHANNEL), body.reason if body else None)
    board.signals.send(Call.CANCEL)
    return _answer(board, actor, task_id)


@router.post("/requeue")
def requeue(task_id: str, board: TheBoard, actor: TheActor, body: RequeueIn | None = None) -> JSONResponse:
    """Put a failed or cancelled task back, with a fresh retry budget."""
    asked = body or RequeueIn()
    with board.db.write() as tx:
        row = visible(tx, actor, task_id, Act.OPERATE)
        intake.requeue(
            tx,
            board.ledger,
            board.catalogue,
            row["id"],
            actor.by(CHANNEL),
            reason=asked.reason,
            from_work=asked.from_ == "work",
            type_version=asked.type_version,
        )
    return _answer(board, actor, task_id)


@router.post("/run-now")
def run_now(task_id: str, board: TheBoard, actor: TheActor, body: ActIn | None = None) -> JSONResponse:
    """Do not wait for the next retry: run at once."""
    with board.db.write() as tx:
        row = visible(tx, actor, task_id, Act.OPERATE)
        runnow.run_now(tx, board.ledger, row["id"], actor.by(CHANNEL), body.reason if body else None)
    return _answer(board, actor, task_id)


@router.post("/acknowledge")
def acknowledge(task_id: str, board: TheBoard, actor: TheActor, body: ActIn | None = None) -> JSONResponse:
    """Say that somebody has seen the failure: the task may be archived after its retention."""
    with board.db.write() as tx:
        row = visible(tx, actor, task_id, Act.OPERATE)
        acknowledging.acknowledge(tx, board.ledger, row["id"], actor.by(CHANNEL), body.reason if body else None)
    return _answer(board, actor, task_id)


@router.post("/approve")
def approve(task_id: str, board: TheBoard, actor: TheActor, body: ShorthandIn | None = None) -> JSONResponse:
    """Approve the task's open review."""
    return _decide("approve", task_id, board, actor, body)


@router.post("/revise")
def revise(task_id: str, board: TheBoard, actor: TheActor, body: ShorthandIn | None = None) -> JSONResponse:
    """Send the task back to work with an `instruction`."""
    return _decide("revise", task_id, board, actor, body)


@router.post("/reject")
def reject(task_id: str, board: TheBoard, actor: TheActor, body: ShorthandIn | None = None) -> JSONResponse:
    """Reject: the task is cancelled."""
    return _decide("reject", task_id, board, actor, body)


@router.get("/operations")
def list_operations(task_id: str, board: TheBoard, actor: TheActor) -> JSONResponse:
    """What this task has done outside, or tried to, with what came back."""
    with board.db.read() as connection:
        row = visible(connection, actor, task_id)
        return listing(shown.of_task(connection, row["id"]))


def _answer(board: TheBoard, actor: TheActor, task_id: str) -> JSONResponse:
    with board.db.read() as connection:
        return ok(board.task_document(connection, visible(connection, actor, task_id)))


def _decide(verdict: str, task_id: str, board: TheBoard, actor: TheActor, body: ShorthandIn | None) -> JSONResponse:
    given: dict[str, Any] = body.model_dump(exclude={"verdict"}) if body else {}
    with board.db.read() as connection:
        row = visible(connection, actor, task_id)
        review = latest_review(connection, row["id"])
    if review is None:
        raise ApiError(409, "no_review", f"No review was ever asked for task “{task_id}”; it is {row['status']}.")
    return decide(board, actor, review["id"], DecisionIn(verdict=verdict, **given))
