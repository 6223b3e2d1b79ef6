"""Running a process: the API with or without a consumer, or a consumer alone, until a signal ends it."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

import uvicorn

from board.app import build_app
from board.rooms import Board
from board.worker.consumer import Consumer

# Open answers (a caller who waits on the line) get so long at a stop; then they are cut, and the caller asks again.
GRACEFUL_SECONDS = 2


def serve_api(board: Board, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT. A consumer that the board has works along and hands its work back at the end."""
    config = uvicorn.Config(
        build_app(board),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
        server_header=False,
        proxy_headers=True,
    )
    # The server raises the signal again once it has wound down; by then there is nothing left to do but leave.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    uvicorn.Server(config).run()


def serve_consumer(board: Board, consumer: Consumer) -> None:
    """Work until SIGTERM or SIGINT, then hand back what is running."""
    asked = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        asked.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    consumer.start()
    asked.wait()
    consumer.stop()
    board.close()


def _leave(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)
