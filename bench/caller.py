"""Callers over HTTP/1.1 that cost as little as possible, so that the machine is left to who is measured."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit


def request(url: str, path: str, key: str, body: bytes) -> bytes:
    """A POST as it goes over the wire."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def get(url: str, path: str, key: str) -> bytes:
    """A GET as it goes over the wire."""
    return f"GET {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nAuthorization: Bearer {key}\r\n\r\n".encode()


def seconds_of_each(url: str, requests: Sequence[bytes]) -> list[float]:
    """Send one after another on one connection; how long each answer took to be there."""
    took: list[float] = []
    send_all(url, requests, 1, took.append)
    return took


def send_all(
    url: str, requests: Sequence[bytes], connections: int, took: Callable[[float], None] = lambda _: None
) -> None:
    """Send them all, so many at the same time, each connection kept. RuntimeError where one is not answered 2xx.

    took: told how many seconds each answer took.
    """

    async def caller(turns: list[bytes]) -> None:
        place = urlsplit(url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        while turns:
            begun = time.perf_counter()
            writer.write(turns.pop())
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            took(time.perf_counter() - begun)
            if not head.startswith(b"HTTP/1.1 2"):
                raise RuntimeError(f"{head[:40]!r} {body[:200]!r}")
        writer.close()

    async def together() -> None:
        turns = list(reversed(requests))
        await asyncio.gather(*(caller(turns) for _ in range(connections)))

    asyncio.run(together())
