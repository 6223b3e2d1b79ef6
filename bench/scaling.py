"""What more worker processes add, where the work is waiting: a handler that takes 0.2 s, as a quick model does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bench.boards import measured
from bench.meter import PostgresMeter, cpu_seconds
from bench.report import Figures, Goal, Report, Rounds
from bench.stand import Stand

NAME = "scaling"
NAP_SECONDS = 0.2
SLOTS = 16  # of each worker: the default
GOALS = {2: 1.8, 4: 3.0}  # so many workers are to do so many times the work of one


def run(stand: Stand, *, workers: Sequence[int] = (1, 2, 4), turns: int = 10, rounds: int = 3) -> Report:
    """turns: how many tasks each slot gets, so that every variant should take the same time."""
    found = Rounds({_name(n): partial(_workers, stand, n, turns) for n in workers}, rounds)
    report = Report(NAME)
    found.into(report)
    for number, bound in GOALS.items():
        if {1, number} <= set(workers):
            report.goals.append(Goal(f"{number} workers to 1", found.ratio(_name(number), _name(1), "tasks/s"), bound))
    return report


def _name(workers: int) -> str:
    return f"{workers} worker{'s' if workers > 1 else ''}"


def _workers(stand: Stand, number: int, turns: int) -> Figures:
    url = stand.postgres()
    server = PostgresMeter(url)
    with measured(stand, url) as board:
        workers = board.workers(number, slots=SLOTS)
        mine, its = sum(cpu_seconds(it.pid) for it in workers), server.seconds()
        tasks = turns * (SLOTS - 1) * number  # one slot of each is kept for rush orders
        board.fill(tasks, "nap", payload={"seconds": NAP_SECONDS})
        board.wait_until_done()
        seconds = board.claimed_to_done()
        used = sum(cpu_seconds(it.pid) for it in workers) - mine
        for it in workers:
            it.stop()
        its = server.seconds() - its
        return {
            "tasks/s": tasks / seconds,
            "of what the slots allow": tasks / seconds * NAP_SECONDS / ((SLOTS - 1) * number),
            "share of the busiest": board.shares()[0],
            "worker CPU ms/task": used / tasks * 1000,
            "PostgreSQL CPU ms/task": its / tasks * 1000,
        }
