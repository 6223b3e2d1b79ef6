"""Builds the web application: the API, the pages, and what holds for every request."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from board import web
from board.api import (
    access,
    bulk,
    callbacks,
    catalogue,
    claims,
    errors,
    files,
    health,
    notices,
    operations,
    ops,
    queue,
    reports,
    review_acts,
    review_bulk,
    review_links,
    review_quality,
    reviews,
    schedules,
    subscriptions,
    task_acts,
    tasks,
    workers,
)
from board.api.taking import Taking
from board.rooms import Board
from board.tools import dify, mcp_door

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
_SLASH = re.compile(rb"%2F", re.IGNORECASE)
API = "/api/v1"


def build_app(board: Board) -> FastAPI:
    """The application for one wired board; serve it with any ASGI server."""
    app = FastAPI(
        title="AI Task Board",
        version=version("ai-task-board"),
        description="Tasks between Dify, n8n and people. Authorization: Bearer KEY, or X-API-Key: KEY.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        servers=[{"url": board.settings.public_url}],
        lifespan=_lifespan,
    )
    app.state.board = board
    app.state.taking = Taking(board)
    errors.install(app)
    # bulk before tasks and quality before reviews, whose addresses with an id would take theirs
    rooms = (
        bulk,
        tasks,
        task_acts,
        review_acts,
        review_bulk,
        review_quality,
        review_links,
        reviews,
        operations,
        catalogue,
        access,
        queue,
        ops,
        claims,
        workers,
        schedules,
        reports,
        subscriptions,
        notices,
        callbacks,
        files,
    )
    for router in (*(room.router for room in rooms), files.uploads):
        app.include_router(router, prefix=API)
    app.include_router(health.router)
    app.include_router(ops.metrics)
    app.include_router(dify.router)
    app.state.mcp = mcp_door.McpDoor(board)
    app.include_router(mcp_door.router)
    app.include_router(files.public)
    web.install(app)
    app.add_middleware(RequestFrame)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    board: Board = app.state.board
    yield
    await app.state.mcp.close()
    board.close()


class RequestFrame:
    """Around every request: its id (the caller's own, where it is sane), a plain path, and HEAD answered like GET."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"x-request-id"), "")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        state: MutableMapping[str, Any] = scope.setdefault("state", {})
        state["request_id"] = request_id
        headless = state["headless"] = scope["method"] == "HEAD"
        scope = {**scope, "path": plain_path(scope), "method": "GET" if headless else scope["method"]}

        async def with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            elif headless:  # as for GET, up to here
                message = {**message, "body": b""}
            await send(message)

        await self._app(scope, receive, with_id)


def plain_path(scope: Scope) -> str:
    """The path that is routed: without one trailing slash, and with an encoded slash kept as part of its name.

    Servers decode `%2F` before routes are matched, so that `/tasks/a%2Fcancel` would cancel the task `a`.
    """
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    path = unquote_to_bytes(_SLASH.sub(b"%252F", raw.partition(b"?")[0])).decode("utf-8", "replace")
    return path[:-1] if len(path) > 1 and path.endswith("/") else path
