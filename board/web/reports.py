"""The weekly report as a page: the same figures as over the API, with charts drawn here and ways into the tasks."""

from __future__ import annotations

from typing import Any

from fastapi.responses import HTMLResponse
from starlette.responses import Response

from board.reports.sheet import workbook
from board.reports.weekly import for_eyes_of
from board.reports.weeks import Week
from board.web.report_view import chart, headline, verdict
from board.web.routing import PageRouter
from board.web.visit import TheReader

router = PageRouter()
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


@router.show("/reports")
def reports_page(visit: TheReader, cursor: str = "") -> HTMLResponse:
    reports = visit.board.reports
    with visit.board.db.read() as connection:
        running = reports.running_week(connection)
    found = reports.listed(cursor or None)
    return visit.page("reports.html", rows=found.rows, next_cursor=found.next_cursor, running=str(running))


@router.show("/reports/{week}")
def report_page(week: str, visit: TheReader) -> Response:
    asked = Week.read(week)
    document = for_eyes_of(visit.board.reports.of(asked), visit.actor)
    if visit.request.query_params.get("format") == "xlsx":
        name = {"content-disposition": f'attachment; filename="report-{asked}.xlsx"'}
        return Response(workbook(document), media_type=XLSX, headers=name)
    return visit.page(
        "report.html",
        report=document,
        verdict=verdict(visit.language, document),
        cells=headline(visit.language, document),
        chart=chart(visit.language, document),
        before=str(asked.previous),
        after=str(asked.next) if document["frozen"] else None,
        types=sorted(document["types"], key=_busy, reverse=True),
    )


def _busy(it: dict[str, Any]) -> int:
    """The types that did most come first."""
    return int(it["created"] + it["done"] + it["failed"] + it["cancelled"])
