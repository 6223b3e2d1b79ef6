"""/queue: how much waits, and what people may change about it while it runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from board.access.rights import Act
from board.api.deps import TheActor, TheAdmin, TheBoard, TheOperator
from board.api.strict import StrictRoute, ok
from board.catalogue.store import UnknownType, list_types
from board.queue import depth, live
from board.queue.live import QueueRules, Weights, Window
from board.rooms import Board
from board.signals.signal import Call

router = APIRouter(prefix="/queue", tags=["queue"], route_class=StrictRoute)


class QueueEdit(BaseModel):
    """Only what is given is changed. weights null: those of BOARD_LANE_WEIGHTS again."""

    model_config = ConfigDict(extra="forbid")

    weights: Weights | None = None
    windows: Annotated[list[Window] | None, Field(max_length=50)] = None


class PauseIn(BaseModel):
    """type left out: the whole queue."""

    model_config = ConfigDict(extra="forbid")

    type: str | None = None
    reason: Annotated[str | None, Field(max_length=2000)] = None


@router.get("")
def get_queue(board: TheBoard, actor: TheActor) -> JSONResponse:
    """Depth per lane and status, the oldest task of each lane, rates, weights, pauses, and what limits keep back."""
    actor.require(Act.READ)
    return _answer(board)


@router.patch("")
def edit_queue(body: QueueEdit, board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """Change the weights of P0 to P3, or the windows of the day with other weights. Workers follow at once."""
    given = {name: getattr(body, name) for name in body.model_fields_set}
    given = {name: value for name, value in given.items() if not (name == "windows" and value is None)}
    with board.db.write() as tx:
        live.change(tx, actor.identity, lambda rules: rules.model_copy(update=given))
    _tell(board)
    return _answer(board)


@router.post("/pause")
def pause(board: TheBoard, actor: TheOperator, body: PauseIn | None = None) -> JSONResponse:
    """Take no new work of a type, or none at all. What runs, runs to its end."""
    return _set(board, actor, body or PauseIn(), paused=True)


@router.post("/resume")
def resume(board: TheBoard, actor: TheOperator, body: PauseIn | None = None) -> JSONResponse:
    """Take work of the type, or of the whole queue, again."""
    return _set(board, actor, body or PauseIn(), paused=False)


def _set(board: Board, actor: TheOperator, body: PauseIn, *, paused: bool) -> JSONResponse:
    def edit(rules: QueueRules) -> QueueRules:
        if body.type is None:
            return rules.model_copy(update={"paused": paused})
        others = [name for name in rules.paused_types if name != body.type]
        return rules.model_copy(update={"paused_types": sorted([*others, body.type]) if paused else others})

    with board.db.write() as tx:
        if body.type is not None and body.type not in [row["name"] for row in list_types(tx)]:
            raise UnknownType(body.type)
        live.change(tx, actor.identity, edit, note=body.reason)
    _tell(board)
    return _answer(board)


def _tell(board: Board) -> None:
    board.signals.send(Call.RULES)
    board.signals.send(Call.OUTSIDE)  # who waits on the line for work looks at the rules anew


def _answer(board: Board) -> JSONResponse:
    with board.db.read() as connection:
        rules = live.read(connection)
        usual = board.settings.lane_weights
        limits = {"limits": board.gate.shown(connection)}
        return ok(depth.snapshot(connection, rules) | {"weights": rules.weights or usual} | limits)
