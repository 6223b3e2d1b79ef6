"""How a request is read: first who asks, then JSON, strictly, up to a limit, whatever Content-Type was sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope

from board.access import keys
from board.access.rights import Actor
from board.api.errors import ApiError, field_error
from board.rooms import Board
from board.tasks.text import BadJson, NotJson, check_text, parse


class StrictRequest(Request):
    """A request whose JSON is checked for everything that could not be stored or shown later."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        headers = [item for item in scope["headers"] if item[0] != b"content-type"]
        super().__init__({**scope, "headers": [*headers, (b"content-type", b"application/json")]}, receive)

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            limit: int = self.app.state.board.settings.max_json
            parts: list[bytes] = []
            size = 0
            async for chunk in self.stream():
                size += len(chunk)
                if size > limit:
                    raise ApiError(
                        413,
                        "json_too_large",
                        f"The JSON body is larger than {limit} bytes (BOARD_MAX_JSON). Send less, or upload a file.",
                    )
                parts.append(chunk)
            self._body = b"".join(parts)
        return self._body

    async def json(self) -> Any:
        try:
            return parse(await self.body())
        except NotJson as error:
            raise ApiError(400, "invalid_json", str(error)) from error
        except BadJson as error:
            raise field_error(error.path, f"{error.path} {error}.", "invalid_text") from error


class StrictRoute(APIRoute):
    """A route of the API. Without a known key nothing of the body is read."""

    request_class: Callable[..., Request] = StrictRequest

    @staticmethod
    async def let_in(request: Request) -> None:
        """Raises ApiError for whoever may not come in."""
        known = request.app.state.board.keys.known(_secret_of(request) or "")
        request.state.actor = known or await run_in_threadpool(actor_of, request)

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        handle = super().get_route_handler()
        takers = (self.dependant, *self.dependant.dependencies)
        known = {field.alias for taker in takers for field in taker.query_params}

        async def strict(request: Request) -> Response:
            await self.let_in(request)
            _check_query(request, known)
            return await handle(self.request_class(request.scope, request.receive))

        return strict


class RawRoute(StrictRoute):
    """A route whose body is no JSON and is read by the route itself, as it arrives."""

    request_class = Request


def _check_query(request: Request, known: set[str]) -> None:
    """A filter that nobody knows would silently show everything."""
    for name, value in request.query_params.multi_items():
        if name not in known:
            shown = name[:100].replace("\0", "?")
            raise field_error(shown, f"“{shown}” is not a parameter of this call; leave it out.", "unknown_field")
        try:
            check_text(value, name)
        except BadJson as error:
            raise field_error(name, f"{name} {error}.", "invalid_text") from error


def actor_of(request: Request) -> Actor:
    """Who holds the key that was sent. Raises ApiError."""
    board: Board = request.app.state.board
    secret = _secret_of(request)
    if secret is None:
        raise ApiError(401, "unauthorized", "Send an API key as `Authorization: Bearer KEY` or `X-API-Key: KEY`.")
    actor = board.keys.find(secret)
    if actor is None:
        raise ApiError(401, "unauthorized", "This API key is unknown or revoked. Make one with `board keys create`.")
    return actor


def _secret_of(request: Request) -> str | None:
    return keys.bearer(request.headers.get("authorization"), request.headers.get("x-api-key"))


def ok(body: Any, status: int = 200) -> JSONResponse:
    """An answer. Never a bare list, never a top-level key `error`: n8n would repeat the call."""
    return JSONResponse(body, status)


def listing(data: list[Any], next_cursor: str | None = None, request: Request | None = None) -> JSONResponse:
    """A page of a list, with the address of the next one."""
    next_url = None
    if next_cursor is not None and request is not None:
        public = request.app.state.board.settings.public_url
        query = request.url.include_query_params(cursor=next_cursor).query
        next_url = f"{public}{request.url.path}?{query}"
    return JSONResponse({"data": data, "next_cursor": next_cursor, "next_url": next_url})
