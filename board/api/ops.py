"""/ops: how the work stands toward other systems; and the same as metrics for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse

from board.access.rights import Act
from board.api.deps import TheActor, TheBoard
from board.api.strict import StrictRoute, ok
from board.metrics import CONTENT_TYPE, exposition
from board.ops import standing
from board.queue import depth, live

router = APIRouter(tags=["queue"], route_class=StrictRoute)
metrics = APIRouter(tags=["health"], route_class=StrictRoute)


@router.get("/ops")
def get_ops(board: TheBoard, actor: TheActor) -> JSONResponse:
    """Every connection with its breaker and its limits, every type with its calls and tokens of today."""
    actor.require(Act.READ)
    with board.db.read() as connection:
        return ok(standing(connection, board.catalogue, board.gate, board.settings.timezone))


@metrics.get("/metrics")
def get_metrics(board: TheBoard, actor: TheActor) -> PlainTextResponse:
    """The queue, the connections and what types spend, in the text format of Prometheus."""
    actor.require(Act.READ)
    with board.db.read() as connection:
        queue = depth.snapshot(connection, live.read(connection))
        text = exposition(queue, standing(connection, board.catalogue, board.gate, board.settings.timezone))
    return PlainTextResponse(text, media_type=CONTENT_TYPE)
