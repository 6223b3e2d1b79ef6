"""A job as the board would give it, over a real connection, with everything that the handler does to it noted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from board.effects.http import Door
from board.ports import Answer, CalledBack, ConnectionView, JsonObject, Lost, Outcome, StreamedAnswer, Wait

KEY = "app-demo-leads"


_doors: WeakKeyDictionary[asyncio.AbstractEventLoop, Door] = WeakKeyDictionary()


def _door() -> Door:
    """The board's own door, one for each event loop; it keeps no connections, so there is nothing to close."""
    loop = asyncio.get_running_loop()
    if loop not in _doors:
        _doors[loop] = Door(["127.0.0.1"])
    return _doors[loop]


@dataclass(slots=True)
class WatchedHttp:
    """The board's own door, with every call noted. trouble: called with method and path before each; it may raise."""

    trouble: Callable[[str, str], None] = lambda method, path: None
    calls: list[tuple[str, str]] = field(default_factory=list)

    def note(self, method: str, url: str) -> None:
        path = urlsplit(url).path
        self.calls.append((method, path))
        self.trouble(method, path)

    async def request(self, method: str, url: str, **more: Any) -> Answer:
        self.note(method, url)
        return await _door().request(method, url, **more)

    @asynccontextmanager
    async def stream(self, method: str, url: str, **more: Any) -> AsyncIterator[StreamedAnswer]:
        self.note(method, url)
        async with _door().stream(method, url, **more) as answer:
            yield answer


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
class CannedHttp(WatchedHttp):
    """Answers the call that starts a run with a made-up answer; every other call is real."""

    answer: Canned = field(default_factory=lambda: Canned([]))

    @asynccontextmanager
    async def stream(self, method: str, url: str, **more: Any) -> AsyncIterator[StreamedAnswer]:
        self.note(method, url)
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
    http: WatchedHttp = field(default_factory=WatchedHttp)
    task_id: str = "t-1"
    type: str = "lead.qualify"
    phase: Literal["work", "act"] = "work"
    priority: str = "P2"
    round: int = 1
    attempt: int = 1
    wait: Wait = "stream"
    answer_url: str | None = None
    files: Any = None
    callbacks: list[CalledBack | None] = field(default_factory=list)  # what called_back() gives, one after the other
    refusal: Exception | None = None  # what send() raises
    sent: list[dict[str, Any]] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    steps: list[str | None] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)  # set at the first reference

    async def send(self, *, kind: str, target: str, request: bytes, fixed: bool = False) -> bytes:
        if self.refusal is not None:
            raise self.refusal
        self.sent.append({"kind": kind, "target": target, "request": request, "fixed": fixed})
        return request

    async def reference(self, external_reference: str) -> None:
        self.references.append(external_reference)
        self.started.set()

    async def called_back(self, within: float) -> CalledBack | None:
        await asyncio.sleep(min(within, 0.01))
        return self.callbacks.pop(0) if self.callbacks else None

    async def post(
        self, *, kind: str, body: bytes, timeout: float | None = None, whole: bool = False
    ) -> Answer | Outcome:
        raise NotImplementedError("no handler of Dify makes a webhook's call")

    async def progress(self, percent: float | None = None, message: str | None = None) -> None:
        self.steps.append(message)

    async def text(self, piece: str) -> None:
        self.texts.append(piece)


def connection(url: str, key: str = KEY, **options: Any) -> ConnectionView:
    return ConnectionView("leads", "dify", url, {"grace": 0.5, **options}, {"key": key})
