"""A simulated board: the real queue, ledger and ageing on a real database, driven by a clock that stands still between
two events. Workers are a number of slots; a task occupies one for a time that the test gives. Nothing is waited for."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from sqlalchemy import func, select

from board.db.engine import Database
from board.queue.lanes import DEFAULT_WEIGHTS, LANES
from board.queue.wanted import Queue, Scope, Wanted
from board.tasks.ledger import Lease, Ledger
from board.tasks.models import WAITING, tasks
from board.tasks.states import Move
from board.upkeep import ageing
from board.upkeep.keeper import AGEING_SECONDS
from board.worker.slots import Slots
from tests.heart import CALLER, WORKER, frozen_clock, new_task

SERVICE = Callable[[int], float]  # seconds that a task of this priority runs


@dataclass(slots=True)
class Begun:
    """One task that has begun: its stored priority, the lane it was taken from, and when. Seconds of the simulation."""

    task: int
    priority: int
    lane: int
    came: float
    began: float
    older: tuple[int, ...]  # tasks of P0 to P3 that were there when it came

    @property
    def waited(self) -> float:
        return self.began - self.came


@dataclass(slots=True)
class _Worker:
    queue: Queue
    slots: Slots


@dataclass
class Simulation:
    """queues: one per worker process, each with its own rounds."""

    db: Database
    ledger: Ledger
    queues: Sequence[Queue]
    slots: int
    reserved: int
    service: SERVICE
    ageing_after: float = 300.0
    weights: Sequence[int] = DEFAULT_WEIGHTS
    now: float = 0.0
    begun: list[Begun] = field(default_factory=list)
    risen: int = 0
    _came: dict[int, tuple[float, tuple[int, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._opened = ExitStack()
        self._at = self._opened.enter_context(frozen_clock(self.db))
        self._workers = [_Worker(queue, Slots(self.slots, self.reserved)) for queue in self.queues]
        self._ends: list[tuple[float, int, int, Lease]] = []  # (when, in which order, whose, what)
        self._number = 0
        self._working = True
        self._sweep = AGEING_SECONDS

    def close(self) -> None:
        self._opened.close()

    # -- what comes -------------------------------------------------------------------------------------------------

    def put(self, *priorities: int) -> None:
        """Tasks that come now, in this order."""
        if not priorities:
            return
        older = Counter(self.waiting())
        with self.db.write() as tx:
            rows = [new_task(f"T-{self._number + n}", priority=it) for n, it in enumerate(priorities)]
            made = self.ledger.create(tx, rows, CALLER)
        self._number += len(priorities)
        for row in rows:
            self._came[made[row["task_id"]]] = self.now, tuple(older[lane] for lane in LANES)
            older[row["priority"]] += 1

    def waiting(self) -> dict[int, int]:
        """Tasks that wait, by the lane they stand in."""
        counted = select(tasks.c.lane, func.count()).where(WAITING).group_by(tasks.c.lane)
        with self.db.read() as connection:
            return {int(lane): int(number) for lane, number in connection.execute(counted)}

    def workers_rest(self) -> None:
        """Nothing is claimed until they work again."""
        self._working = False

    def workers_work(self) -> None:
        self._working = True

    # -- what happens -----------------------------------------------------------------------------------------------

    def run(
        self, until: Callable[[], bool], comes: Callable[[], None] = lambda: None, due: Sequence[float] = ()
    ) -> None:
        """Go on until it holds. comes: called after each event, puts in what comes then; due: when to call it else."""
        comes()
        while not until():
            if self._working:
                self._claim()
            self.now = min([self._sweep, *due, *(end[0] for end in self._ends[:1])])
            self._at(self.now)
            self._end()
            if self._sweep <= self.now:
                self.risen += ageing.age(self.db, self.ledger, self.ageing_after)
                self._sweep = self.now + AGEING_SECONDS
            comes()

    def _claim(self) -> None:
        """Each worker fills its free slots, as the consumer does."""
        for number, worker in enumerate(self._workers):
            while True:
                free, rest = worker.slots.free()
                if free <= 0:
                    break
                wanted = Wanted(Scope(), free, rest, f"w{number}", lease=1e6, weights=self.weights, busy=True)
                rows = worker.queue.claim(wanted).rows
                if not rows:
                    break
                for row in rows:
                    lease = Lease(row["id"], row["lease_token"])
                    worker.slots.hold(lease, urgent=row["lane"] == 0)
                    came, older = self._came.pop(row["id"])
                    self.begun.append(Begun(row["id"], row["priority"], row["lane"], came, self.now, older))
                    end = self.now + self.service(row["priority"])
                    heapq.heappush(self._ends, (end, len(self.begun), number, lease))

    def _end(self) -> None:
        if not self._ends or self._ends[0][0] > self.now:
            return
        with self.db.write() as tx:
            while self._ends and self._ends[0][0] <= self.now:
                _, _, number, lease = heapq.heappop(self._ends)
                assert self.ledger.settle(tx, lease, Move.SUCCEED, WORKER) is not None
                self._workers[number].slots.release(lease)
