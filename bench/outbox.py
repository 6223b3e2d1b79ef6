"""What word to the caller costs: how much it adds to the end of a task, and how many calls/s one worker makes."""

from __future__ import annotations

import time
from functools import partial

from sqlalchemy import func, select

from bench.boards import MeasuredBoard, measured, wait_for
from bench.growth import BATCH, claim
from bench.meter import PostgresMeter, cpu_seconds
from bench.receiver import a_receiver
from bench.report import Figures, Goal, Report, Rounds
from bench.stand import Stand
from board.effects.models import deliveries
from board.ports import Success
from board.tasks.history import By
from board.tasks.ledger import Lease
from board.worker.ending import Ended
from board.worker.endings import Endings

NAME = "outbox"
PLAIN, TOLD = "end, nobody is told", "end, with a callback"
BY = By("worker", "bench", "worker")


def run(stand: Stand, *, ends: int = 1000, sent: int = 3000, rounds: int = 5) -> Report:
    """ends: tasks of each round that end; sent: callbacks that one worker sends. Both a multiple of 50."""
    report = Report(NAME)
    with a_receiver(stand.guard) as url:
        with measured(stand, stand.postgres(), allow_private_targets=["127.0.0.1"]) as board:
            by_url = {PLAIN: partial(_end, board, ends, None), TOLD: partial(_end, board, ends, url)}
            for measure in by_url.values():
                measure()  # statements are made and plans are known
            found = Rounds(by_url, rounds)
        found.into(report)
        with measured(stand, stand.postgres(), allow_private_targets=["127.0.0.1"]) as board:
            _end(board, sent, url)
            report.rows["calls of one worker"] = figures = _send(board, sent)
    ratio = found.ratio(TOLD, PLAIN, "ms/task")
    report.goals += [
        Goal("time to end a task, with a callback to without", ratio, 1.1, at_least=False),
        Goal("calls/s of one worker", figures["calls/s"], 500),
    ]
    return report


def _end(board: MeasuredBoard, tasks: int, url: str | None) -> Figures:
    """Claimed tasks end, 50 in a commit, as they do where a worker is busy."""
    server = PostgresMeter(board.url)
    endings = Endings(board.board.db, board.board.ledger, board.board.catalogue)
    ended: list[list[Ended]] = []
    for _ in range(tasks // BATCH):
        board.fill(BATCH, callback_url=url)
        rows = claim(board)
        done = Success(result={"label": "ok"})
        ended.append([Ended(row, Lease(row["id"], row["lease_token"]), BY, done) for row in rows])
    begun, mine, its = time.perf_counter(), time.process_time(), server.seconds()
    for batch in ended:
        assert endings.write(batch) == [None] * len(batch)
    seconds, mine, its = time.perf_counter() - begun, time.process_time() - mine, server.seconds() - its
    return {
        "ms/task": seconds / tasks * 1000,
        "worker CPU ms/task": mine / tasks * 1000,
        "PostgreSQL CPU ms/task": its / tasks * 1000,
    }


def _send(board: MeasuredBoard, calls: int) -> Figures:
    """From the first call to the last, as they are in the log of deliveries."""
    server = PostgresMeter(board.url)
    its = server.seconds()
    (worker,) = board.workers(1, slots=16)
    mine = cpu_seconds(worker.pid)

    def written() -> int:
        with board.board.db.read() as connection:
            return int(connection.execute(select(func.count()).select_from(deliveries)).scalar_one())

    wait_for(lambda: written() >= calls)
    mine, its = cpu_seconds(worker.pid) - mine, server.seconds() - its
    worker.stop()
    with board.board.db.read() as connection:
        first, last = connection.execute(select(func.min(deliveries.c.at), func.max(deliveries.c.at))).one()
    return {
        "calls/s": calls / (last - first).total_seconds(),
        "worker CPU ms/task": mine / calls * 1000,
        "PostgreSQL CPU ms/task": its / calls * 1000,
    }
