"""Reads a server-sent event stream: bytes in, events out, however the bytes were cut on their way.

Follows the event-stream format of the WHATWG HTML standard, with two differences that Dify needs: a frame that has
a name but no data (`event: ping`) comes out too, because it proves that the stream is alive, and what stands in the
buffer at the end of the stream comes out as well (a whole JSON text needs no blank line to be known as whole; one
that was cut does not parse).
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass

# Dify variables are at most 200 KB each; a frame may carry the inputs and outputs of a node with many of them.
MAX_EVENT_BYTES = 8 * 1024 * 1024

# Only these end a line. str.splitlines() would also cut at U+2028, U+0085 and others, which stand raw in JSON.
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class EventTooLarge(Exception):
    """One event grew over the limit; the stream cannot be read further."""


@dataclass(frozen=True, slots=True)
class Event:
    """One frame. name: its `event` field, empty when absent. data: its data lines joined, None when it had none."""

    name: str
    data: str | None


class EventReader:
    """Holds the unfinished line and the unfinished frame between two pieces of the stream."""

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._line = bytearray()
        self._after_cr = False  # the last byte was CR: an LF that comes next belongs to it
        self._first_line = True
        self._name = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that this piece completes. Raises EventTooLarge. Read it to its end before feeding more."""
        if not chunk:
            return
        start = 1 if self._after_cr and chunk.startswith(b"\n") else 0
        self._after_cr = chunk.endswith(b"\r")
        for end in _LINE_END.finditer(chunk, start):
            self._grow(end.start() - start)
            self._line += chunk[start : end.start()]
            start = end.end()
            line = bytes(self._line)
            self._line.clear()
            yield from self._take(line)
        self._grow(len(chunk) - start)
        self._line += chunk[start:]

    def close(self) -> Iterator[Event]:
        """The event that the end of the stream left unfinished, if there is one."""
        line = bytes(self._line)
        self._line.clear()
        if line:
            yield from self._take(line)
        yield from self._take(b"")

    def _grow(self, count: int) -> None:
        self._size += count
        if self._size > self._max_bytes:
            raise EventTooLarge(f"one event is larger than {self._max_bytes} bytes")

    def _take(self, line: bytes) -> Iterator[Event]:
        if self._first_line:
            line = line.removeprefix(_BOM)
            self._first_line = False
        if not line:
            if self._name or self._data:
                yield Event(self._name, "\n".join(self._data) if self._data else None)
            self._name, self._data, self._size = "", [], 0
            return
        # A whole line is decoded at once, so a character that was cut between two pieces is whole again here.
        field, _, value = line.decode("utf-8", errors="replace").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        # Comments (an empty field name), id, retry and unknown fields say nothing that is needed here.


async def read_events(chunks: AsyncIterator[bytes], max_bytes: int = MAX_EVENT_BYTES) -> AsyncGenerator[Event, None]:
    """All events of a stream, in order. What `chunks` raises passes through; EventTooLarge as in EventReader."""
    reader = EventReader(max_bytes)
    try:
        async for chunk in chunks:
            for event in reader.feed(chunk):
                yield event
        for event in reader.close():
            yield event
    finally:
        # Whoever stops reading early closes this generator, and with it the one below, before the connection goes.
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()
