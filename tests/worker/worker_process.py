"""A worker, or with `up PORT` a whole board, as a process of its own, with handlers that only tests have.

Run as a script: it takes its settings from BOARD_* and says "ready" when it works. The handler `trial` does what the
payload says: {"sleep": seconds}, {"thread": seconds} (sleeps in a thread, which nobody can stop), {"exit": true}.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any

from board import logs, settings
from board.app import build_app
from board.ports import Job, Outcome, Success
from board.rooms import open_board
from board.serve import listen, serve_api, serve_consumer
from board.worker.registry import load_handlers
from tests.rig.working import Probe


async def trial(job: Job) -> Outcome:
    payload: Any = job.payload
    if payload.get("exit"):
        os._exit(13)
    if seconds := payload.get("thread"):
        await asyncio.to_thread(time.sleep, seconds)
    await asyncio.sleep(payload.get("sleep", 0) if job.attempt == 1 else 0)
    return Success(result=job.attempt)


def main() -> None:
    loaded = settings.load()
    logs.set_up(loaded.log_format)
    own: Any = {"trial": Probe(trial, name="trial")}
    board = open_board(loaded, handlers=lambda: load_handlers() | own)
    board.make_consumer()
    if sys.argv[1:2] == ["up"]:
        bound = listen("127.0.0.1", int(sys.argv[2]))
        serve_api(board, build_app(board), bound, lambda: print("ready", flush=True))
    else:
        print("ready", flush=True)
        serve_consumer(board)


if __name__ == "__main__":
    main()
