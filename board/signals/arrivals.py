"""Waking those who wait on the line for something to come, inside one process: for work, or for reviews."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Arrivals:
    """`ring()` from any thread; `listen()` on an event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listening: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    def ring(self) -> None:
        """Something may have come, or the process goes down: everybody who listens looks now."""
        with self._lock:
            listening = list(self._listening.items())
        for event, loop in listening:
            with suppress(RuntimeError):  # its loop has just been closed: nobody waits there any more
                loop.call_soon_threadsafe(event.set)

    @contextmanager
    def listen(self) -> Iterator[asyncio.Event]:
        """An event that is set at every ring; clear it before looking, so that no ring is lost in between."""
        event = asyncio.Event()
        with self._lock:
            self._listening[event] = asyncio.get_running_loop()
        try:
            yield event
        finally:
            with self._lock:
                del self._listening[event]
