"""What files may do to whoever parses them; run in children."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from integrations.files.bad_file import BadFile
from integrations.files.pool import Pool, Turn


def hang() -> None:
    while True:
        time.sleep(60)


def tell_and_hang(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    hang()


def eat_memory(size: int) -> int:
    return len(bytearray(size))


def die(number: int) -> None:
    os.kill(os.getpid(), signal.Signals(number))
    time.sleep(60)


def refuse(message: str) -> None:
    raise BadFile(message)


def fill_the_disk(number: int) -> None:
    raise OSError(number, os.strerror(number))


def meet(folder: str, most: int, number: int) -> int:
    """Wait until `most` of these run at the same time."""
    (Path(folder) / str(number)).touch()
    end = time.monotonic() + 30
    while len(list(Path(folder).iterdir())) < most:
        if time.monotonic() > end:
            raise BadFile("nobody else came")
        time.sleep(0.01)
    return os.getpid()


if __name__ == "__main__":  # a parent: with a path its child hangs, without one it works and the parent stops
    pool = Pool()
    asyncio.run(
        pool.run(Turn(1), 60.0, tell_and_hang, sys.argv[1]) if sys.argv[1:] else pool.run(Turn(1), 60.0, os.getpid)
    )
    pool.close()
    os._exit(0)  # as board.serve.leave
