"""Running a process: the API with or without a consumer, or a consumer alone, until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

import uvicorn
from fastapi import FastAPI

from board.rooms import Board
from board.signals.signal import Channel

log = logging.getLogger(__name__)

# Whatever hangs, a database that does not answer above all: this long after the first signal the process is gone.
# Service managers kill after 10 s.
LAST_SECONDS = 8.0
# Open answers (a caller who waits on the line) get so long at a stop; then they are cut, and the caller asks again.
GRACEFUL_SECONDS = 2


class CannotListen(Exception):
    """The address is taken or not ours; the text says what to do."""


def listen(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 takes a free one. Raises CannotListen."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError as error:
        raise CannotListen(
            f"Cannot listen on {host}:{port}: {error.strerror or error}. Choose another with --host and --port."
        ) from error
    return bound


def serve_api(board: Board, app: FastAPI, bound: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT. ready: called once when requests are being answered.

    A consumer that the board has starts then, and hands its work back at the end.
    """

    def begin() -> None:
        channels = {Channel.CALLERS} if board.consumer is None else set(Channel)
        board.signals.start(channels)
        ready()
        if board.consumer is not None:
            board.consumer.start()

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
        server_header=False,
        proxy_headers=True,
    )
    # The server raises the signal again once it has wound down; by then there is nothing left to do but leave.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    if board.consumer is not None:
        board.consumer.on_lost = _lost
    _Server(config, board, begin).run(sockets=[bound])


def serve_consumer(board: Board, ready: Callable[[], None] = lambda: None) -> None:
    """Work until SIGTERM or SIGINT, then hand back what is running. ready: called once when it works."""
    consumer = board.consumer
    assert consumer is not None
    asked = _stop_asked()
    consumer.on_lost = _lost
    board.signals.start({Channel.WORKERS})
    consumer.start()
    ready()
    asked.wait()
    consumer.stop()
    board.close()
    leave()


def leave(code: int = 0) -> NoReturn:
    """End the process at once, without waiting for threads: what a handler computes in one cannot be stopped."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, board: Board, begin: Callable[[], None]) -> None:
        super().__init__(config)
        self._board = board
        self._begin = begin

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._begin()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:  # the second signal
            leave(128 + sig)
        _leave_at_last()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # First who waits on the line and who works: a handler may be calling this very server.
        self._board.stopping.set()
        self._board.claims.arrivals.ring()
        self._board.signals.callers.ring()
        if self._board.consumer is not None:
            await asyncio.to_thread(self._board.consumer.stop)
        # What is still open after the grace is cut on purpose, which is no error to be logged.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


def _leave(_number: int, _frame: FrameType | None) -> None:
    leave()


def _stop_asked() -> threading.Event:
    """Set by the first SIGTERM or SIGINT; the second one ends the process at once.

    Python runs its handlers in the main thread, which sleeps on if the system gave the signal to another thread. The
    wake-up file is written whichever thread got it, and a thread of its own reads it.
    """
    asked = threading.Event()
    wakes, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: None)

    def listen() -> None:
        os.read(wakes, 1)
        _leave_at_last()
        asked.set()
        leave(128 + os.read(wakes, 1)[0])

    threading.Thread(target=listen, name="signals", daemon=True).start()
    return asked


def _leave_at_last() -> None:
    last = threading.Timer(LAST_SECONDS, leave)
    last.daemon = True
    last.start()


def _lost(reason: str) -> None:
    """The database is gone for good: what is held here belongs to nobody any more, so nothing is handed back."""
    log.error("%s", reason)
    leave(1)
