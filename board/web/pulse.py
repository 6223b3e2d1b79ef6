"""What an open page hears of by itself: how many reviews wait, and how many of them are new since it was loaded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack, suppress
from typing import Annotated, Any

from fastapi import Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from fastapi.sse import KEEPALIVE_COMMENT
from starlette.responses import Response

from board.access import sessions
from board.access.rights import Act
from board.db.engine import AWAY
from board.following import AGAIN_SECONDS, PING_SECONDS, EventStream, frame
from board.review import read
from board.web.narrowing import asked_of
from board.web.routing import PageRouter
from board.web.visit import SESSION_COOKIE, TheReader, Visit

router = PageRouter()
TOGETHER = 0.5  # seconds: reviews that come in together are one look, and one change of the page

Since = Annotated[int, Query(ge=0, le=2**63 - 1)]  # the newest review that the page shows


@router.show("/pulse")
def pulse(visit: TheReader, since: Since = 0) -> JSONResponse:
    """The answer for a page that asks now and then; the address says, too, what its list is narrowed to."""
    return JSONResponse(_look(visit, since))


@router.get("/pulse/live", response_model=None)
async def live(visit: TheReader, since: Since = 0) -> Response:
    """The same, told whenever it changes."""
    leaving = ExitStack()
    changed = leaving.enter_context(visit.board.reviews_changed.listen())
    return EventStream(leaving, _keep_telling(visit, changed, since))


async def _keep_telling(visit: Visit, changed: asyncio.Event, since: int) -> AsyncGenerator[bytes, None]:
    """Until the process goes down, or nobody is signed in any more. What nobody tells is found with the next look."""
    told: dict[str, Any] | None = None
    while not visit.board.stopping.is_set():
        changed.clear()
        try:
            signed_in = await run_in_threadpool(_still_reads, visit)
            beat = await run_in_threadpool(_look, visit, since)
        except AWAY:
            await asyncio.sleep(AGAIN_SECONDS)
            continue
        if not signed_in:
            return
        yield KEEPALIVE_COMMENT if beat == told else frame("pulse", beat)
        told = beat
        await asyncio.sleep(TOGETHER)
        with suppress(TimeoutError):
            await asyncio.wait_for(changed.wait(), PING_SECONDS)


def _look(visit: Visit, since: int) -> dict[str, Any]:
    asked = asked_of(visit.request)
    with visit.board.db.read() as connection:
        wanted = asked.wanted(connection, visit.actor, visit.board.settings.timezone)
        waiting, new = read.count_open(connection), read.count_newer(connection, since, wanted)
    words = visit.language.ngettext("{n} new review: show it", "{n} new reviews: show them", new)
    return {"waiting": waiting, "new": new, "said": words.format(n=visit.language.number(new))}


def _still_reads(visit: Visit) -> bool:
    token = visit.request.cookies.get(SESSION_COOKIE, "")
    with visit.board.db.read() as connection:
        session = sessions.find(connection, token)
    return session is not None and session.actor.may(Act.READ)
