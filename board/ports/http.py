"""The only way out of the house, as handlers see it."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias


class HttpError(Exception):
    """Base of what `Http` raises. The message is one plain sentence without secrets."""


class NotSent(HttpError):
    """The connection was never made: nothing left the house."""


class Lost(HttpError):
    """Sent, but the answer was lost (time-out, reset, cut short): the outcome is unknown."""


class Refused(HttpError):
    """The guarded door refused the address or the size; nothing left the house."""


# What is sent. In pieces, it needs the header Content-Length beside it, and goes out as it is read.
Content: TypeAlias = bytes | AsyncIterable[bytes] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """One whole HTTP answer. Header names are lower-case. body is at most the door's size limit."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", errors="replace")


class StreamedAnswer(Protocol):
    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises Lost when it is cut or silent for longer than the read time-out."""

    async def read(self) -> bytes:
        """The rest of the body, up to the door's limit."""


class Http(Protocol):
    """The only way out. Redirects are not followed, proxies of the environment are ignored."""

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: Content = None,
        timeout: float = 30.0,
    ) -> Answer:
        """One call, at most `timeout` seconds in all. Raises NotSent, Lost, Refused."""

    def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: Content = None,
        read_timeout: float = 60.0,
    ) -> AbstractAsyncContextManager[StreamedAnswer]:
        """A call whose body is read as it arrives; `read_timeout` is the longest silence in seconds."""
