"""How fast one worker process empties a queue of tasks that do nothing, from the first claim to the last end.

The board keeps its whole ledger: each task has its events and its attempt. Beside it, on the same server: pgqueuer and
Procrastinate, and pgbench with the shortest statements for the same rows; and the board on SQLite.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import limit, rivals
from bench.boards import MeasuredBoard, measured, wait_for
from bench.meter import PostgresMeter, cpu_seconds
from bench.report import Figures, Goal, Report, Rounds
from bench.stand import Stand

NAME = "drain"
SQLITE, LIMIT = "board, SQLite", "pgbench, same rows"


def run(stand: Stand, *, tasks: int = 20_000, rounds: int = 3, sqlite: bool = True) -> Report:
    """tasks: of each round; a multiple of 200, as pgbench takes 50 at a time with 4 clients."""
    variants: dict[str, Callable[[], Figures]] = {"board": partial(_board, stand, stand.postgres, tasks)}
    if sqlite:
        variants[SQLITE] = partial(_board, stand, stand.sqlite, tasks)
    report = Report(NAME)
    program = limit.pgbench(stand.programs)
    if program is not None:
        variants[LIMIT] = partial(_limit, stand, program, tasks)
    else:
        report.remarks.append("pgbench is not installed: the limit of PostgreSQL was not measured.")
    for name in rivals.RIVALS:
        if rivals.installed(name):
            variants[name] = partial(_rival, stand, name, tasks)
        else:
            report.remarks.append(f"{name} is not installed (extra bench): not compared.")
    found = Rounds(variants, rounds)
    found.into(report)
    if "pgqueuer" in variants:
        ratio = found.ratio("board", "pgqueuer", "tasks/s")
        report.goals.append(Goal("rate of the board to that of pgqueuer", ratio, 1.0))
    if program is not None:
        ratio = found.ratio("board", LIMIT, "tasks/s")
        report.goals.append(Goal("rate of the board to the limit of PostgreSQL", ratio, 0.5))
    if sqlite:
        report.goals.append(Goal("tasks/s on SQLite", found.medians(SQLITE)["tasks/s"], 3000))
    return report


def _board(stand: Stand, database: Callable[[], str], tasks: int) -> Figures:
    url = database()
    server = None if url.startswith("sqlite") else PostgresMeter(url)
    with measured(stand, url) as board:
        (worker,) = board.workers(1, slots=rivals.AT_ONCE)
        mine, its = cpu_seconds(worker.pid), server.seconds() if server else math.nan
        board.fill(tasks)
        board.wait_until_done()
        used = cpu_seconds(worker.pid) - mine, (server.seconds() if server else math.nan) - its
        worker.stop()
        return _figures(tasks, board.claimed_to_done(), *used) | {"commits/task": _commits(board, tasks)}


def _limit(stand: Stand, program: Path, tasks: int) -> Figures:
    url = stand.postgres()
    server = PostgresMeter(url)
    with measured(stand, url) as board:
        board.fill(tasks)
        its = server.seconds()
        mine = limit.drain(program, url, tasks)
        used = mine, server.seconds() - its
        return _figures(tasks, board.claimed_to_done(), *used) | {"commits/task": _commits(board, tasks)}


def _commits(board: MeasuredBoard, tasks: int) -> float:
    return (board.commits("started") + board.commits("done")) / tasks


def _rival(stand: Stand, name: str, tasks: int) -> Figures:
    rival, url = rivals.RIVALS[name], stand.empty_postgres()
    tasks = int(tasks * rival.part)
    asyncio.run(rival.install(url))
    server = PostgresMeter(url)
    worker = rivals.RivalWorker(name, url, stand.guard)
    try:
        mine, its = cpu_seconds(worker.pid), server.seconds()
        asyncio.run(rival.fill(url, tasks))
        wait_for(lambda: not rivals.one(url, rival.left))
        return _figures(
            tasks, float(rivals.one(url, rival.span)), cpu_seconds(worker.pid) - mine, server.seconds() - its
        )
    finally:
        worker.stop()


def _figures(tasks: int, seconds: float, worker: float, server: float) -> dict[str, float]:
    return {
        "tasks/s": tasks / seconds,
        "worker CPU ms/task": worker / tasks * 1000,
        # filling the queue included, but for the limit
        "PostgreSQL CPU ms/task": server / tasks * 1000,
    }
