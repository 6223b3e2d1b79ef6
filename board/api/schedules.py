"""/schedules: tasks that are put in by the clock."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from board.api.deps import CHANNEL, DEFAULT_LIMIT, Cursor, Limit, TheAdmin, TheBoard
from board.api.strict import StrictRoute, listing, ok
from board.upkeep import schedules
from board.upkeep.schedules import ScheduleEdit, ScheduleIn

router = APIRouter(prefix="/schedules", tags=["schedules"], route_class=StrictRoute)


@router.get("")
def list_schedules(
    request: Request, board: TheBoard, actor: TheAdmin, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> JSONResponse:
    """Every schedule, by name, with its next due time."""
    with board.db.read() as connection:
        page = schedules.listed(connection, cursor, limit)
    return listing([schedules.shown(row) for row in page.rows], page.next_cursor, request)


@router.post("", status_code=201)
def create_schedule(body: ScheduleIn, board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """A new schedule. Its task is checked now, as POST /tasks would."""
    return ok(schedules.shown(board.schedules.create(body, actor.by(CHANNEL))), 201)


@router.get("/{name}")
def get_schedule(name: str, board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """One schedule with its last firings, the newest first."""
    with board.db.read() as connection:
        row = schedules.one(connection, name)
        fired = schedules.last_firings(connection, name)
    return ok(schedules.shown(row) | {"firings": [schedules.shown_firing(it) for it in fired]})


@router.patch("/{name}")
def edit_schedule(name: str, body: ScheduleEdit, board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """Change, pause or resume it. `version` must be the one that was read, else 409."""
    return ok(schedules.shown(board.schedules.edit(name, body, actor.by(CHANNEL))))


@router.delete("/{name}")
def delete_schedule(name: str, board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """It fires no more; the tasks that it has put in stay."""
    board.schedules.remove(name, actor.by(CHANNEL))
    return ok({"name": name, "deleted": True})
