"""How good the AI's suggestions are: one table, by type."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from fastapi.responses import HTMLResponse

from board.catalogue import store
from board.db.clock import read_now
from board.review import quality
from board.web.routing import PageRouter
from board.web.visit import TheReader

router = PageRouter()
DAYS = (7, 28, 90)


@router.show("/quality")
def quality_page(visit: TheReader, days: str = "") -> HTMLResponse:
    board = visit.board
    chosen = int(days) if days in {str(it) for it in DAYS} else 28
    with board.db.read() as connection:
        end = read_now(connection)
        found = quality.by_type(connection, end - timedelta(days=chosen), end)
        current: dict[str, Any] = {row["name"]: row for row in store.list_types(connection)}
        titles = {
            name: board.catalogue.current(connection, name).spec.shown_title(visit.language.code)
            for name in found
            if name in current
        }
    return visit.page(
        "quality.html",
        figures=found,
        titles=titles,
        total=quality.together(found.values()),
        days=chosen,
        choices=DAYS,
    )
