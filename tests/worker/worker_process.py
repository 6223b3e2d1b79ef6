"""A worker, or with `up PORT` a whole board, as a process of its own, with handlers that only tests have.

Run as a script: it takes its settings from BOARD_* and says "ready" when it works. The handler `trial` does what the
payload says: {"sleep": seconds}, {"thread": seconds} (sleeps in a thread, which nobody can stop), {"exit": true}. Every
attempt that begins leaves its task's ID as a line in the file that BOARD_TEST_BEGUN names. With BOARD_TEST_DIE it kills
itself with SIGKILL: `claimed`, once its first batch is claimed and before any of it begins; `settling`, while the ends
of the first ones are written and before the commit.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from board import logs, settings
from board.app import build_app
from board.ports import Job, Outcome, Success
from board.queue.wanted import Taken
from board.rooms import open_board
from board.serve import listen, serve_consumer
from board.serve_web import serve_api
from board.worker.registry import load_handlers
from tests.rig.working import Probe


def _note(file: str, task_id: str) -> None:
    with open(file, "a") as lines:  # one small write: lines of several processes stay whole
        lines.write(f"{task_id}\n")


def _dying(function: Callable[..., Any]) -> Callable[..., Any]:
    """Dies when the function has come back with anything."""

    def wrapped(*arguments: Any, **named: Any) -> Any:
        answer = function(*arguments, **named)
        if answer.rows if isinstance(answer, Taken) else answer:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    return wrapped


async def trial(job: Job) -> Outcome:
    payload: Any = job.payload
    if begun := os.environ.get("BOARD_TEST_BEGUN"):
        _note(begun, job.task_id)
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
    match os.environ.get("BOARD_TEST_DIE"):
        case "claimed":
            board.queue.claim = _dying(board.queue.claim)  # type: ignore[method-assign]
        case "settling":
            board.ledger.settle_many = _dying(board.ledger.settle_many)  # type: ignore[method-assign]
    board.make_consumer()
    if sys.argv[1:2] == ["up"]:
        bound = listen("127.0.0.1", int(sys.argv[2]))
        serve_api(board, build_app(board), bound, lambda: print("ready", flush=True))
    else:
        print("ready", flush=True)
        serve_consumer(board)


if __name__ == "__main__":
    main()
