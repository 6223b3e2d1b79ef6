"""Two processes of one board, as two wired boards: one serves callers, the other works."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from board import settings
from board.following import look
from board.rooms import Board, open_board
from board.signals.signal import Channel, Signal
from board.tasks.bodies import TaskIn
from board.tasks.states import TERMINAL
from board.worker.registry import load_handlers
from tests.heart import CALLER
from tests.rig.working import WorkingBoard

SOON = 15.0  # seconds; far less than any look takes here, far more than a signal
QUICK = 5.0  # a stop takes about one; a service manager waits for ten


class Pair:
    """front: a process that callers ask; `work()` makes one that works. `url`, `redis`: where they meet."""

    def __init__(self, url: str, redis_url: str, folder: Path) -> None:
        self.url, self.redis, self._folder = url, redis_url, folder
        self._opened = ExitStack()
        self.front = self.open({Channel.CALLERS})

    def open(self, channels: set[Channel], *handlers: Any) -> Board:
        loaded = settings.load(
            database_url=self.url,
            redis_url=self.redis,
            data_dir=self._folder / "data",
            concurrency=4,
            allow_private_targets=["127.0.0.1"],
        )
        board = open_board(loaded, handlers=lambda: load_handlers() | {it.name: it for it in handlers})
        self._opened.callback(board.close)
        board.signals.start(channels)
        assert board.signals.wait_until_listening(SOON)
        return board

    def work(self, *handlers: Any) -> WorkingBoard:
        board = self.open({Channel.WORKERS}, *handlers)
        worker = WorkingBoard(board)
        worker.type("trial", "probe")
        worker.apply(types=[{"name": "outside", "handler": {"use": "outside", "side_effects": False}}])
        looked = board.make_consumer()
        looked.looked_at = 0.0
        looked.start()
        self._opened.callback(looked.stop)
        # The first looks are over: from now on it only hears.
        until(lambda: looked.looked_at > 0 and looked._claimer.rules is not None)
        return worker

    def submit(self, task_id: str = "T-1", type: str = "trial", **body: Any) -> int:
        with self.front.db.write() as tx:
            taken = self.front.intake.take(tx, TaskIn(type=type, task_id=task_id, **body), CALLER)
        assert taken.id is not None
        return taken.id

    def close(self) -> None:
        self._opened.close()


@pytest.fixture(params=["PostgreSQL", "Redis"])
def pair(
    request: pytest.FixtureRequest, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Pair]:
    monkeypatch.setattr("board.worker.consumer.POLL_SECONDS", 600.0)
    monkeypatch.setattr("board.upkeep.keeper.LOOK_SECONDS", 600.0)  # who leads looks for work as often
    monkeypatch.setattr("board.signals.callers.LOOK_SECONDS", 600.0)
    monkeypatch.setattr("board.api.claims.PAUSE", 600.0)
    made = Pair(postgres_url, request.getfixturevalue("redis_url") if request.param == "Redis" else "", tmp_path)
    yield made
    made.close()


def until(holds: Callable[[], bool], seconds: float = SOON) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)


async def settled(board: Board, task: int) -> str:
    """The status a caller is told when the task has ended."""
    with board.signals.callers.open() as caller:
        caller.follow(task)
        document = look(board, caller)
        while document["status"] not in TERMINAL:
            assert await caller.wait(SOON), "nothing was heard"
            document = look(board, caller)
    return str(document["status"])


def heard_by(board: Board) -> list[Signal]:
    """What a board hears from now on, from itself and from others."""
    came: list[Signal] = []
    hear = board.signals._hear

    def listen(signal: Signal) -> None:
        came.append(signal)
        hear(signal)

    board.signals._hear = listen  # type: ignore[method-assign]
    assert board.signals._line is not None
    board.signals._line._heard = listen
    return came
