"""Callers over HTTP/1.1 that cost as little as possible, so that the machine is left to who is measured."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from urllib.parse import urlsplit


def request(url: str, path: str, key: str, body: bytes) -> bytes:
    """A POST as it goes over the wire."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def send_all(url: str, requests: Sequence[bytes], connections: int) -> None:
    """Send them all, so many at the same time, each connection kept. RuntimeError where one is not answered 2xx."""

    async def caller(turns: list[bytes]) -> None:
        place = urlsplit(url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        while turns:
            writer.write(turns.pop())
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            if not head.startswith(b"HTTP/1.1 2"):
                raise RuntimeError(f"{head[:40]!r} {body[:200]!r}")
        writer.close()

    async def together() -> None:
        turns = list(reversed(requests))
        await asyncio.gather(*(caller(turns) for _ in range(connections)))

    asyncio.run(together())
