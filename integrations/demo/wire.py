"""How Dify's Service API speaks on the wire: error bodies, JSON, event-stream frames, a connection that can be cut."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Coroutine, Mapping
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

JsonObject = dict[str, Any]
T = TypeVar("T")

PING = b"event: ping\n\n"
CUT = b"\x00cut"  # yielded by a stream to say: drop the connection here, in the middle of the body


class DifyError(Exception):
    """An error answer of the Service API: its body is always `{code, message, status}`."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})


def invalid_param(message: str) -> DifyError:
    return DifyError(400, "invalid_param", message)


def not_found(message: str) -> DifyError:
    return DifyError(404, "not_found", message)


def dump(value: object) -> bytes:
    """JSON as UTF-8. A lone surrogate has no UTF-8 form, so a value that holds one is written with escapes."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def json_answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(dump(value), status, headers, "application/json")


async def error_answer(request: Request, error: Exception) -> Response:
    """Starlette's hook for DifyError."""
    assert isinstance(error, DifyError)
    body = {"code": error.code, "message": error.message, "status": error.status}
    return json_answer(body, error.status, error.headers)


def frame(event: JsonObject) -> bytes:
    return b"data: " + dump(event) + b"\n\n"


async def json_body(request: Request) -> JsonObject:
    """The request's JSON object, refused as Dify refuses it: 415 without the content type, 400 for broken JSON."""
    if "json" not in request.headers.get("content-type", ""):
        raise DifyError(415, "unsupported_media_type", "Did not attempt to load JSON data: not application/json.")
    try:
        body = json.loads(await request.body())
    except ValueError:
        raise DifyError(400, "bad_request", "Failed to decode JSON object.") from None
    if not isinstance(body, dict):
        raise DifyError(400, "bad_request", "The body must be a JSON object.")
    return body


class Streamed(Response):
    """A body sent piece by piece, which ends when the client leaves, and which may be cut by yielding CUT.

    A cut body lacks its last chunk, so the client sees a connection that broke in the middle of an answer.
    """

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        media_type: str = "text/event-stream",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(None, 200, {"Content-Type": media_type} | dict(headers or {}))
        del self.headers["content-length"]
        self.pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await unless_gone(receive, self._send_pieces(send))

    async def _send_pieces(self, send: Send) -> None:
        async with contextlib.aclosing(self.pieces) as pieces:
            async for piece in pieces:
                if piece == CUT:
                    return
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """What the work gives, or None when the client leaves first. The request's body must have been read before."""
    working, leaving = asyncio.create_task(work), asyncio.create_task(_disconnect(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        leaving.cancel()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
