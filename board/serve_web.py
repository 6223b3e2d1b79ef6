"""Running the API and the pages, with or without a consumer in the same process, until a signal ends it.

Apart from serve.py, because a worker alone needs no web server: neither its memory nor the time to load it.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from board.rooms import Board
from board.serve import leave, leave_at_last, lost, settle_in
from board.signals.signal import Channel

# Open answers (a caller who waits on the line) get so long at a stop; then they are cut, and the caller asks again.
GRACEFUL_SECONDS = 2


def serve_api(board: Board, app: FastAPI, bound: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT. ready: called once when requests are being answered.

    A consumer that the board has starts then, and hands its work back at the end.
    """

    def begin() -> None:
        channels = {Channel.CALLERS} if board.consumer is None else set(Channel)
        board.signals.start(channels)
        settle_in()
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
        board.consumer.on_lost = lost
    _Server(config, board, begin).run(sockets=[bound])


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
        leave_at_last()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # First who waits on the line and who works: a handler may be calling this very server.
        self._board.stopping.set()
        self._board.claims.arrivals.ring()
        self._board.reviews_changed.ring()
        self._board.signals.callers.ring()
        if self._board.consumer is not None:
            await asyncio.to_thread(self._board.consumer.stop)
        # What is still open after the grace is cut on purpose, which is no error to be logged.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


def _leave(_number: int, _frame: FrameType | None) -> None:
    leave()
