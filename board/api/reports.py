"""/reports: the weekly report, the same figures as on its page and in its mail."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from board.access.rights import Act
from board.api.deps import DEFAULT_LIMIT, Cursor, Limit, TheActor, TheBoard
from board.api.strict import StrictRoute, listing, ok
from board.reports.sheet import workbook
from board.reports.weekly import for_eyes_of
from board.reports.weeks import Week

router = APIRouter(prefix="/reports", tags=["reports"], route_class=StrictRoute)
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


@router.get("")
def list_reports(
    request: Request, board: TheBoard, actor: TheActor, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> JSONResponse:
    """The weeks that are over, the newest first, each with its headline."""
    actor.require(Act.READ)
    found = board.reports.listed(cursor, limit)
    return listing(found.rows, found.next_cursor, request)


@router.get("/{week}")
def get_report(week: str, board: TheBoard, actor: TheActor, format: Literal["json", "xlsx"] = "json") -> Response:
    """One week, such as 2026-W48. The running one is worked out anew each time: `frozen` is false."""
    actor.require(Act.READ)
    document = for_eyes_of(board.reports.of(Week.read(week)), actor)
    if format == "xlsx":
        name = {"Content-Disposition": f'attachment; filename="report-{document["week"]}.xlsx"'}
        return Response(workbook(document), media_type=XLSX, headers=name)
    return ok(document)
