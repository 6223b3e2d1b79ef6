"""A job as the board would give it, over a real connection, with everything that the handler does to it noted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

from board.ports import Answer, ConnectionView, JsonObject, Lost, NotSent, StreamedAnswer

KEY = "app-demo-leads"


class Chunked:
    """ports.StreamedAnswer over httpx."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._response.aiter_raw():
                yield piece
        except httpx.HTTPError as error:
            raise Lost(f"the connection broke ({type(error).__name__})") from None

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.chunks()])


@dataclass(slots=True)
class PlainHttp:
    """ports.Http over httpx. trouble: called with method and path before each call; it may raise."""

    trouble: Callable[[str, str], None] = lambda method, path: None
    calls: list[tuple[str, str]] = field(default_factory=list)

    def _note(self, method: str, url: str) -> None:
        path = httpx.URL(url).path
        self.calls.append((method, path))
        self.trouble(method, path)

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout: float = 30.0,
    ) -> Answer:
        self._note(method, url)
        try:
            async with httpx.AsyncClient(trust_env=False, verify=False) as client, asyncio.timeout(timeout):
                answer = await client.request(method, url, headers=headers, content=content, timeout=timeout)
        except httpx.ConnectError:
            raise NotSent("no connection could be made") from None
        except (httpx.HTTPError, TimeoutError) as error:
            raise Lost(f"the answer was lost ({type(error).__name__})") from None
        return Answer(answer.status_code, {n.lower(): v for n, v in answer.headers.items()}, answer.content)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        read_timeout: float = 60.0,
    ) -> AsyncIterator[StreamedAnswer]:
        self._note(method, url)
        limits = httpx.Timeout(read_timeout, connect=5.0)
        async with httpx.AsyncClient(trust_env=False, verify=False, timeout=limits) as client:
            request = client.build_request(method, url, headers=headers, content=content)
            try:
                response = await client.send(request, stream=True)
            except httpx.ConnectError:
                raise NotSent("no connection could be made") from None
            except httpx.HTTPError as error:
                raise Lost(f"the answer was lost ({type(error).__name__})") from None
            try:
                yield Chunked(response)
            finally:
                await response.aclose()


@dataclass(slots=True)
class Canned:
    """A ports.StreamedAnswer that is made up. `broken`: the connection breaks after the last piece."""

    pieces: Sequence[bytes]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    broken: bool = False

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece
        if self.broken:
            raise Lost("the connection broke")

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.chunks()])


@dataclass(slots=True)
class CannedHttp(PlainHttp):
    """Answers the call that starts a run with a made-up answer; every other call is real."""

    answer: Canned = field(default_factory=lambda: Canned([]))

    @asynccontextmanager
    async def stream(self, method: str, url: str, **more: Any) -> AsyncIterator[StreamedAnswer]:
        self._note(method, url)
        yield self.answer


@dataclass
class NotedJob:
    """ports.Job; what the handler announced, stored and passed on is in its lists."""

    connection: ConnectionView | None
    inputs: JsonObject
    payload: JsonObject = field(default_factory=lambda: {"from": "payload"})
    user: str = "board:1:1"
    options: Mapping[str, Any] = field(default_factory=dict)
    output_schema: JsonObject | None = None
    timeout: float = 20.0
    http: PlainHttp = field(default_factory=PlainHttp)
    task_id: str = "t-1"
    type: str = "lead.qualify"
    phase: Literal["work", "act"] = "work"
    priority: str = "P2"
    round: int = 1
    attempt: int = 1
    sent: list[dict[str, Any]] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    steps: list[str | None] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)  # set at the first reference

    async def send(self, *, kind: str, target: str, request: bytes, key: str | None = None) -> None:
        self.sent.append({"kind": kind, "target": target, "request": request, "key": key})

    async def reference(self, external_reference: str) -> None:
        self.references.append(external_reference)
        self.started.set()

    async def progress(self, percent: float | None = None, message: str | None = None) -> None:
        self.steps.append(message)

    async def text(self, piece: str) -> None:
        self.texts.append(piece)


def connection(url: str, key: str = KEY, **options: Any) -> ConnectionView:
    return ConnectionView("leads", "dify", url, {"grace": 0.5, **options}, {"key": key})
