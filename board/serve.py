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
    _Server(config, board, begin).run(sockets=[bound])


def serve_consumer(board: Board) -> None:
    """Work until SIGTERM or SIGINT, then hand back what is running."""
    consumer = board.consumer
    assert consumer is not None
    asked = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        asked.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    consumer.start()
    asked.wait()
    consumer.stop()
    board.close()
    leave()


def leave() -> NoReturn:
    """End the process at once, without waiting for threads: what a handler computes in one cannot be stopped."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, board: Board, begin: Callable[[], None]) -> None:
        super().__init__(config)
        self._board = board
        self._begin = begin

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._begin()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # First who waits on the line and who works: a handler may be calling this very server.
        self._board.stopping.set()
        self._board.claims.arrivals.ring()
        if self._board.consumer is not None:
            await asyncio.to_thread(self._board.consumer.stop)
        # What is still open after the grace is cut on purpose, which is no error to be logged.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


def _leave(_number: int, _frame: FrameType | None) -> None:
    leave()
