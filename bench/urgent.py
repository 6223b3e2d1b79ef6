"""How soon a rush order starts while a hundred thousand tasks wait and every slot but the one kept free is busy."""

from __future__ import annotations

import random
import time
from statistics import quantiles

from sqlalchemy import select

from bench.boards import measured, wait_for
from bench.crowd import crowd
from bench.meter import PostgresMeter, cpu_seconds
from bench.report import Goal, Report
from bench.stand import Stand
from board.tasks.models import tasks

NAME = "urgent"
SLOTS = 16
NAP_SECONDS = 0.2
PAUSE = 0.05  # seconds between two rush orders, on average


def run(stand: Stand, *, waiting: int = 100_000, orders: int = 300) -> Report:
    url = stand.postgres()
    server = PostgresMeter(url)
    with measured(stand, url) as board:
        crowd(board, waiting, "nap", lane=3, payload={"seconds": NAP_SECONDS})
        (worker,) = board.workers(1, slots=SLOTS)

        def running() -> int:
            with board.board.db.read() as connection:
                return len(connection.execute(select(tasks.c.id).where(tasks.c.status == "running")).all())

        wait_for(lambda: running() >= SLOTS - 1)
        begun, mine, its = time.monotonic(), cpu_seconds(worker.pid), server.seconds()
        for _ in range(orders):
            board.fill(1, priority="P0")
            time.sleep(random.uniform(0, 2 * PAUSE))
        lane0 = tasks.c.priority == 0

        def waits() -> list[float]:
            query = select(tasks.c.created_at, tasks.c.started_at).where(lane0)
            with board.board.db.read() as connection:
                return [
                    (row.started_at - row.created_at).total_seconds() * 1000 if row.started_at else -1.0
                    for row in connection.execute(query)
                ]

        wait_for(lambda: all(wait >= 0 for wait in waits()))
        seconds = time.monotonic() - begun
        cuts = quantiles(waits(), n=100)
        report = Report(NAME)
        report.rows[f"P0 beside {waiting:,} P3"] = {
            "median ms": cuts[49],
            "p99 ms": cuts[98],
            "worst ms": max(waits()),
            "worker CPU %": (cpu_seconds(worker.pid) - mine) / seconds * 100,
            "PostgreSQL CPU %": (server.seconds() - its) / seconds * 100,
        }
        report.goals.append(Goal("p99 of the wait of a P0, in ms", cuts[98], 100, at_least=False))
        worker.stop()
    return report
