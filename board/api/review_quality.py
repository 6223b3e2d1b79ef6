"""GET /reviews/quality: how good the AI's suggestions were, as their reviewers judged."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BeforeValidator

from board.access.rights import Act
from board.api.deps import Several, TheActor, TheBoard, split
from board.api.errors import field_error
from board.api.strict import StrictRoute, ok
from board.db.clock import read_now
from board.review import quality
from board.tasks.bodies import Moment
from board.tasks.view import time

router = APIRouter(tags=["reviews"], route_class=StrictRoute)
USUAL = timedelta(days=28)  # four whole weeks: every weekday counts alike
From = Annotated[Moment | None, BeforeValidator(lambda text: text or None), Query(alias="from")]
To = Annotated[Moment | None, BeforeValidator(lambda text: text or None), Query(alias="to")]


@router.get("/reviews/quality")
def get_quality(
    board: TheBoard, actor: TheActor, type: Several = None, since: From = None, until: To = None
) -> JSONResponse:
    """Figures by type on what was decided from `from` on and before `to`; without them of the last 28 days."""
    actor.require(Act.READ)
    with board.db.read() as connection:
        end = until or read_now(connection)
        begin = since or end - USUAL
        if begin >= end:
            raise field_error("from", "from must be before to.", "invalid_field")
        found = quality.by_type(connection, begin, end, split(type))
    return ok(
        {
            "from": time(begin),
            "to": time(end),
            "data": [{"type": name} | quality.document(it) for name, it in found.items()],
            "total": quality.document(quality.together(found.values())),
        }
    )
