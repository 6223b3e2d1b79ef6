"""Many claimers at once never exceed a limit, with and without Redis: threads on two boards.

Real processes: tests/worker/test_limits.py.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy import select

from board.queue.wanted import Scope, Wanted
from board.tasks.claiming import Lease
from board.tasks.models import tasks
from board.tasks.states import Move
from tests.heart import WORKER
from tests.queue.conftest import settle
from tests.rig.working import OpenWorking, WorkingBoard

CLAIMERS = 8
SECONDS = 40.0  # far more than it takes


class Crowd:
    """Claimers that take and end tasks until all are done, on several boards, and watch what runs together."""

    def __init__(self, boards: list[WorkingBoard], tasks_in_all: int, groups: dict[str, list[str]]) -> None:
        self._boards, self._left = boards, tasks_in_all
        self._groups = groups  # by task the names of the limits under which it runs
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.began: list[str] = []

    def work(self, number: int) -> None:
        board, chance = self._boards[number % len(self._boards)].board, random.Random(number)
        end = time.monotonic() + SECONDS
        held: list[Any] = []
        while time.monotonic() < end:
            with self._lock:
                if self._left <= 0:
                    return
            wanted = Wanted(Scope(), 3, 3, worker=f"w{number}", lease=60.0, within=self._begin)
            held += (rows := board.queue.claim(wanted).rows)
            if not rows and not held:
                time.sleep(0.005)  # as a worker does: who asks again at once keeps SQLite from those who end something
            chance.shuffle(held)
            for row in [held.pop() for _ in range(chance.randint(0, len(held)))]:
                self._end(row)
                with board.db.write() as tx:
                    lease = Lease(row["id"], row["lease_token"])
                    assert board.ledger.settle(tx, lease, Move.SUCCEED, WORKER) is not None
        raise AssertionError("they never came to an end")

    def _begin(self, _tx: Any, rows: Any) -> None:
        """Inside the claiming transaction: from here on it runs."""
        with self._lock:
            for row in rows:
                self.began.append(row["task_id"])
                for name in self._groups[row["task_id"]]:
                    self._running[name] += 1
                    self.most[name] = max(self.most[name], self._running[name])

    def _end(self, row: Any) -> None:
        """Before the settling transaction: until here it ran."""
        with self._lock:
            self._left -= 1
            for name in self._groups[row["task_id"]]:
                self._running[name] -= 1


def test_eight_claimers_on_two_boards_exceed_no_limit_and_leave_nothing(open_limited: OpenWorking) -> None:
    boards = [open_limited(start=False), open_limited(start=False)]
    first = boards[0]
    first.type("plain", use="echo")
    first.type("three", use="echo", limits={"concurrency": 3})
    first.type("keyed", use="echo", limits={"concurrency_key": "{{ payload.k }}", "concurrency": 2})
    groups: dict[str, list[str]] = {}
    for number in range(40):
        for kind in ("plain", "three", "keyed"):
            name = first.submit(f"{kind}-{number}", type=kind, payload={"k": number % 5}, priority=f"P{number % 4}")
            groups[name] = {"plain": [], "three": ["three"], "keyed": [f"key {number % 5}"]}[kind]
    crowd = Crowd(boards, len(groups), groups)
    with ThreadPoolExecutor(CLAIMERS) as threads:
        list(threads.map(crowd.work, range(CLAIMERS)))
    assert sorted(crowd.began) == sorted(groups), "each began once"
    assert crowd.most["three"] <= 3
    assert all(crowd.most[f"key {key}"] <= 2 for key in range(5))
    # Else the test would pass on a gate that lets nothing through together.
    assert crowd.most["three"] == 3
    assert max(crowd.most[f"key {key}"] for key in range(5)) == 2
    with first.board.db.read() as connection:
        query = select(tasks.c.task_id).where(tasks.c.status != "done")
        assert connection.execute(query).scalars().all() == []


def test_racing_claimers_count_every_start_of_a_day_and_of_a_rate(open_limited: OpenWorking) -> None:
    boards = [open_limited(start=False), open_limited(start=False)]
    boards[0].type("day", use="echo", limits={"per_day": 17})
    boards[0].type("rate", use="echo", limits={"rate": "200/d"})  # ten at once, the next in seven minutes
    for number in range(30):
        boards[0].submit(f"day-{number}", type="day")
        boards[0].submit(f"rate-{number}", type="rate")
    settle(boards[0])
    together = threading.Barrier(CLAIMERS)

    def claim(number: int) -> list[str]:
        mine: list[str] = []
        together.wait()
        for _ in range(10):
            taken = boards[number % 2].board.queue.claim(Wanted(Scope(), 3, 3, worker=f"w{number}", lease=60.0))
            mine += [row["type"] for row in taken.rows]
        return mine

    with ThreadPoolExecutor(CLAIMERS) as threads:
        taken = Counter(name for names in threads.map(claim, range(CLAIMERS)) for name in names)
    assert taken == {"day": 17, "rate": 10}
