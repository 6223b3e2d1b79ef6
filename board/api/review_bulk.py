"""Many low-risk reviews of one type approved in one call: what would be approved, the approval, and taking it back."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from board.api.deps import CHANNEL, TheBoard, TheReviewer
from board.api.errors import field_error
from board.api.strict import StrictRoute, ok
from board.review import bulk, read
from board.review.content import consequence
from board.review.filters import Asked
from board.rooms import Board
from board.tasks.read import by_internal_id

router = APIRouter(prefix="/reviews/bulk-decision", tags=["reviews"], route_class=StrictRoute)

ReviewId = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")]
Ids = Annotated[list[ReviewId], Field(min_length=1, max_length=bulk.MOST)]
Names = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=50)]


class FilterIn(BaseModel):
    """As in the query of GET /reviews; the first of the inbox's order are meant."""

    model_config = ConfigDict(extra="forbid")

    type: Annotated[str, Field(min_length=1, max_length=200)]
    reason: Names = Field(default_factory=list)
    due: Annotated[str, Field(max_length=40)] = ""
    mine: bool = False


class PreviewIn(BaseModel):
    """One of the two."""

    model_config = ConfigDict(extra="forbid")

    ids: Ids | None = None
    filter: FilterIn | None = None


class PinIn(BaseModel):
    """A review as it was shown: by the preview, or by GET /reviews."""

    model_config = ConfigDict(extra="forbid")

    id: ReviewId
    version: Annotated[int, Field(ge=1, lt=2**31)]
    content_hash: Annotated[str, Field(min_length=1, max_length=64)]


class BulkIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    verdict: Literal["approve"]
    reviews: Annotated[list[PinIn], Field(min_length=1, max_length=bulk.MOST)]
    reason: Annotated[str | None, Field(max_length=10_000)] = None


class UndoIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ids: Ids


@router.post("/preview")
def preview(body: PreviewIn, board: TheBoard, actor: TheReviewer) -> JSONResponse:
    """What would be approved together, each with its target and what pins it; and what is left out, with why.

    Changes nothing. `data` goes as `reviews` into POST /reviews/bulk-decision.
    """
    if (body.ids is None) == (body.filter is None):
        raise field_error("ids", "Send either `ids` or `filter`.", "invalid_field")
    more = False
    with board.db.read() as connection:
        if body.filter is not None:
            asked = Asked((body.filter.type,), ("low",), tuple(body.filter.reason), body.filter.due, body.filter.mine)
            wanted = asked.wanted(connection, actor, board.settings.timezone)
            page = read.inbox(connection, wanted=wanted, limit=bulk.MOST)
            ids, more = [row["id"] for row in page.rows], page.next_cursor is not None
        else:
            ids = [int(review) for review in body.ids or ()]
        plan = bulk.plan(connection, board.decisions, ids, actor)
        data = [_together(board, connection, row, plan.pins[row["id"]]) for row in plan.together]
        left_out = [_named(row["id"], row["task_id"]) | bulk.why_apart(why) for row, why in plan.apart]
        known = {row["id"] for row in plan.together} | {row["id"] for row, _ in plan.apart}
    left_out += [_named(it, None) | bulk.why_apart("not_found") for it in dict.fromkeys(ids) if it not in known]
    return ok({"count": len(data), "more": more, "data": data, "left_out": left_out})


@router.post("")
def approve(body: BulkIn, board: TheBoard, actor: TheReviewer) -> JSONResponse:
    """Approve up to 100, each on its own as it was shown. One that changed meanwhile never spoils the rest."""
    pins = [bulk.Pin(int(it.id), it.version, it.content_hash) for it in body.reviews]
    if len({pin.review for pin in pins}) < len(pins):
        raise field_error("reviews", "reviews names one of them twice.", "invalid_field")
    report = bulk.approve(board.db, board.decisions, pins, actor, CHANNEL, body.reason)
    return ok(_report(board, report, "approved"))


@router.post("/undo")
def undo(body: UndoIn, board: TheBoard, actor: TheReviewer) -> JSONResponse:
    """Take your approvals back, each on its own, inside their grace time."""
    ids = [int(review) for review in dict.fromkeys(body.ids)]
    return ok(_report(board, bulk.undo(board.db, board.decisions, ids, actor, CHANNEL), "undone"))


def _report(board: Board, report: bulk.Report, done: str) -> dict[str, Any]:
    with board.db.read() as connection:
        ids = [*report.done, *(review for review, _ in report.refused)]
        names = {review: _task_of(connection, review) for review in ids}
    data: list[dict[str, Any]] = [
        _named(it, names[it]) | {"status": "repeated" if it in report.repeated else done} for it in report.done
    ]
    data += [_named(it, names[it]) | {"status": "refused"} | bulk.why_refused(code) for it, code in report.refused]
    counts = {done: len(report.done), "refused": len(report.refused)}
    return counts | {"summary": bulk.summary(report, done), "data": data}


def _task_of(connection: Any, review: int) -> str | None:
    row = read.by_id(connection, review)
    return None if row is None else str(by_internal_id(connection, row["task"])["task_id"])


def _named(review: int, task_id: str | None) -> dict[str, Any]:
    return {"id": str(review), "task_id": task_id}


def _together(board: Board, connection: Any, row: Any, pin: bulk.Pin) -> dict[str, Any]:
    task = by_internal_id(connection, row["task"])
    spec = board.catalogue.version(connection, task["type"], task["type_version"]).spec
    return {
        **_named(row["id"], row["task_id"]),
        "title": row["title"],
        "version": pin.version,
        "content_hash": pin.content_hash,
        "consequence": consequence(connection, board.catalogue, spec),
    }
