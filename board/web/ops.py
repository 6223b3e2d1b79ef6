"""How the work stands toward other systems: connections that fail, limits in use, what types spend today."""

from __future__ import annotations

from fastapi.responses import HTMLResponse

from board.ops import standing
from board.web.routing import PageRouter
from board.web.visit import TheReader

router = PageRouter()


@router.show("/ops")
def ops_page(visit: TheReader) -> HTMLResponse:
    board = visit.board
    with board.db.read() as connection:
        found = standing(connection, board.catalogue, board.gate, board.settings.timezone)
    types = [it for it in found["types"] if _says_something(it)]
    quiet = len(found["types"]) - len(types)
    return visit.page("ops.html", **found | {"types": types, "quiet": quiet})


def _says_something(it: dict[str, object]) -> bool:
    """Types that have neither limits nor calls today would only fill the page."""
    keys = ("calls_today", "tokens_today", "tokens_per_day", "concurrency", "rate", "per_day", "held")
    return any(it[key] for key in keys)
