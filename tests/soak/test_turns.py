"""Days of work in seconds: shares, ageing and the longest wait, by a clock that the test sets. `make soak` runs longer
and prints what it measured."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest
from sqlalchemy import select

from board.db.engine import Database
from board.queue.lanes import DEFAULT_WEIGHTS, LANES
from board.queue.ledger_queue import LedgerQueue
from board.queue.wanted import Queue
from board.tasks.ledger import Ledger
from board.tasks.models import task_events, tasks
from tests.heart import events_of, gate
from tests.soak import LONGER
from tests.soak.bound import Bound
from tests.soak.model import Begun, Simulation

ROUND = sum(DEFAULT_WEIGHTS)


class Simulate(Protocol):
    def __call__(self, *, workers: int = 1, **parts: Any) -> Simulation: ...


@pytest.fixture
def simulate(database_url: str) -> Iterator[Simulate]:
    """Makes simulated boards on one empty database; `workers` have each their own queue."""
    db = Database(database_url)
    opened: list[Simulation] = []

    def simulate(*, workers: int = 1, **parts: Any) -> Simulation:
        ledger = Ledger()
        queues: list[Queue] = [LedgerQueue(db, ledger, gate(db, ledger)) for _ in range(workers)]
        opened.append(Simulation(db, ledger, queues, **parts))
        return opened[-1]

    yield simulate
    for it in opened:
        it.close()
    db.close()


def steady(simulation: Simulation, level: int, lanes: tuple[int, ...] = LANES) -> Callable[[], None]:
    """Endless arrivals: whenever fewer than `level` of a priority wait, as many more come."""
    waits = Counter[int]()

    def comes() -> None:
        counted = Counter(begun.priority for begun in simulation.begun)
        new = [lane for lane in lanes if waits[lane] - counted[lane] < level for _ in range(level)]
        waits.update(new)
        simulation.put(*new)

    return comes


def longest(begun: list[Begun]) -> dict[int, float]:
    return {lane: max((it.waited for it in begun if it.priority == lane), default=0.0) for lane in LANES}


@pytest.mark.parametrize(("workers", "slots", "reserved"), [(1, 16, 1), (1, 2, 1), (3, 4, 1)])
def test_under_full_load_each_lane_has_its_share(simulate: Simulate, workers: int, slots: int, reserved: int) -> None:
    chance = random.Random(1)
    board = simulate(
        workers=workers,
        slots=slots,
        reserved=reserved,
        service=lambda _: chance.choice([0.5, 1.0, 1.0, 5.0]),
        ageing_after=1e9,  # shares are those of lanes that hold work; ageing empties the lower ones
    )
    turns = 25 * ROUND * LONGER
    board.run(lambda: len(board.begun) >= turns, steady(board, 100))
    got = Counter(it.lane for it in board.begun[:turns])
    others = turns - got[0]
    for lane, weight in zip(LANES[1:], DEFAULT_WEIGHTS[1:], strict=True):
        assert got[lane] == pytest.approx(others * weight / sum(DEFAULT_WEIGHTS[1:]), rel=0.05), got
    assert got[0] >= 0.95 * turns * DEFAULT_WEIGHTS[0] / ROUND
    if slots >= 4:  # of fewer, the slot that is kept for P0 is more than its share
        assert got[0] <= 1.05 * turns * DEFAULT_WEIGHTS[0] / ROUND


@pytest.mark.parametrize(
    ("slots", "reserved", "service", "backlog", "ageing_after"),
    [
        (16, 1, 1.0, (20, 20, 20, 1), 300.0),  # a steady stream of urgent work and one task of P3
        (4, 1, 10.0, (10, 10, 10, 40), 300.0),  # ageing decides
        (2, 0, 5.0, (5, 5, 5, 30), 60.0),
        (3, 1, 2.0, (10, 10, 10, 40), 100_000.0),  # no ageing: the turns alone
    ],
)
def test_nobody_waits_longer_than_the_bound(  # B037
    simulate: Simulate,
    slots: int,
    reserved: int,
    service: float,
    backlog: tuple[int, ...],
    ageing_after: float,
) -> None:
    """P0 to P2 come without end; every task, and above all those of P3, begins within the bound of docs/queue.md."""
    chance = random.Random(2)
    board = simulate(
        slots=slots,
        reserved=reserved,
        ageing_after=ageing_after,
        service=lambda _: service * chance.choice([0.2, 0.5, 1.0, 1.0]),
    )
    board.put(*(3 for _ in range(backlog[3])))
    endless = steady(board, backlog[0], (0, 1, 2))

    def low() -> int:
        return sum(it.priority == 3 for it in board.begun)

    board.run(lambda: low() == backlog[3] and len(board.begun) >= 20 * ROUND * LONGER, endless)
    bound = Bound(slots, reserved, service, ageing_after)
    print(f"\n{bound.table()}\nlongest wait measured: {longest(board.begun)}")
    for it in board.begun:
        assert it.waited <= bound.wait(it.priority, it.older), (it, bound)
    urgent = sum(it.lane == 0 for it in board.begun)
    assert urgent >= 0.95 * len(board.begun) * DEFAULT_WEIGHTS[0] / ROUND, "and P0 has its share"


def test_in_a_lane_first_come_is_first_served(simulate: Simulate) -> None:
    board = simulate(workers=2, slots=4, reserved=1, service=lambda _: 1.0)
    board.run(lambda: len(board.begun) >= 10 * ROUND, steady(board, 30))
    for lane in LANES:
        order = [it.task for it in board.begun if it.lane == lane == it.priority]
        assert order == sorted(order)


def test_every_step_of_ageing_has_its_event_and_none_leads_into_p0(simulate: Simulate) -> None:
    board = simulate(slots=2, reserved=0, service=lambda _: 20.0, ageing_after=60.0)
    board.run(lambda: board.now >= 1200 * LONGER, steady(board, 20))
    with board.db.read() as connection:
        aged = connection.execute(select(task_events.c.task).where(task_events.c.kind == "aged")).scalars().all()
        assert len(aged) == board.risen > 50
        for row in connection.execute(select(tasks.c.id, tasks.c.priority, tasks.c.lane)).all():
            steps = [event["data"] for event in events_of(connection, row.id) if event["kind"] == "aged"]
            lanes = [f"P{lane}" for lane in range(row.priority, row.lane - 1, -1)]
            assert [(it["from"], it["to"]) for it in steps] == list(itertools.pairwise(lanes))
            assert row.lane >= min(row.priority, 1)


def test_aged_tasks_never_slow_a_rush_order(simulate: Simulate) -> None:
    """The same rush orders beside 3,000 tasks of P3 that have just come, and beside as many that have risen to P1."""
    orders = 200 * min(LONGER, 3)  # more of them would outlive the backlog
    waits: dict[bool, list[float]] = {}
    for aged in (False, True):
        rises = 300.0 if aged else 1e9  # what is fresh stays so, however long it waits
        board = simulate(slots=4, reserved=1, service=lambda lane: 3.0 if lane else 2.0, ageing_after=rises)
        board.put(*(3 for _ in range(3000)))
        board.workers_rest()
        if aged:
            board.run(lambda board=board: board.now >= 1200)
            assert board.waiting() == {1: 3000}
        board.workers_work()
        chance, begin = random.Random(3), board.now
        due = [begin + 1.0]

        def comes(board: Simulation = board, due: list[float] = due, chance: random.Random = chance) -> None:
            while due[0] <= board.now:
                board.put(0)
                due[0] += chance.expovariate(0.5)

        board.run(lambda board=board: sum(it.lane == 0 for it in board.begun) >= orders, comes, due)
        waits[aged] = sorted(it.waited for it in board.begun if it.priority == 0)[:orders]
        assert sum(it.lane == 1 for it in board.begun) == (sum(it.priority == 3 for it in board.begun) if aged else 0)
        with board.db.write() as tx:
            tx.execute(tasks.delete())
    for name, place in (("half", 0.5), ("95 %", 0.95), ("99 %", 0.99), ("all", 1.0)):
        fresh, risen = (waits[aged][round(place * (orders - 1))] for aged in (False, True))
        print(f"P0: {name} begin within {fresh:.2f} s beside fresh work, within {risen:.2f} s beside aged work")
        assert risen <= fresh + 0.01
