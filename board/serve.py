"""Running a process until a signal ends it: what all have in common, and the worker alone. The API: serve_web.py."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from board.rooms import Board
from board.signals.signal import Channel

log = logging.getLogger(__name__)

# Whatever hangs, a database that does not answer above all: this long after the first signal the process is gone.
# Service managers kill after 10 s.
LAST_SECONDS = 8.0
# So many new objects until the collector looks at them: it then takes milliseconds, and what nobody uses any more and
# still holds itself takes a few megabytes at most.
YOUNG_OBJECTS = 20_000


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


def serve_consumer(board: Board, ready: Callable[[], None] = lambda: None) -> None:
    """Work until SIGTERM or SIGINT, then hand back what is running. ready: called once when it works."""
    consumer = board.consumer
    assert consumer is not None
    asked = _stop_asked()
    consumer.on_lost = lost
    board.signals.start({Channel.WORKERS})
    consumer.start()
    settle_in()
    ready()
    asked.wait()
    consumer.stop()
    board.close()
    leave()


def settle_in() -> None:
    """What is loaded by now stays: the collector of cycles need not look at it again, and less often at all.

    Python looks at all young objects after every 700 that were made. A batch of tasks makes thousands, of which none
    forms a cycle: looking for those took a fifth of a busy worker's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 10, 10)


def leave(code: int = 0) -> NoReturn:
    """End the process at once, without waiting for threads: what a handler computes in one cannot be stopped."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


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
        leave_at_last()
        asked.set()
        leave(128 + os.read(wakes, 1)[0])

    threading.Thread(target=listen, name="signals", daemon=True).start()
    return asked


def leave_at_last() -> None:
    """From now on the process has LAST_SECONDS left, whatever hangs."""
    last = threading.Timer(LAST_SECONDS, leave)
    last.daemon = True
    last.start()


def lost(reason: str) -> None:
    """The database is gone for good: what is held here belongs to nobody any more, so nothing is handed back."""
    log.error("%s", reason)
    leave(1)
