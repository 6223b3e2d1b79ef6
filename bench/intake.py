"""How fast tasks come in: many at once through the ledger, many at once over HTTP, and one by one over HTTP."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from functools import partial

from bench.boards import CHUNK, PAYLOAD, MeasuredBoard, measured
from bench.caller import request, send_all
from bench.meter import PostgresMeter, cpu_seconds
from bench.report import Figures, Goal, Report, Rounds
from bench.stand import Stand
from board.serve import settle_in
from tests.rig.board import API_KEY, BoardProcess

NAME = "intake"
LEDGER, BULK, SINGLE = "ledger, 1,000 at once", "HTTP, 1,000 at once", "HTTP, one by one"
BULK_CALLERS = 2  # so that one body is read while another is written
SINGLE_CALLERS = 16  # flows of n8n that send at the same time


def run(stand: Stand, *, bulk: int = 10_000, single: int = 2000, rounds: int = 3) -> Report:
    """bulk, single: tasks of each round; bulk: a multiple of 1,000."""
    report = Report(NAME)
    settle_in()  # as every process of the board does: what puts in by the ledger is this one
    with measured(stand, stand.postgres()) as board:
        http = OverHttp(board, board.start("api"))
        by_ledger, by_bulk = partial(_ledger, board, bulk), partial(http.measure, bulk, CHUNK, BULK_CALLERS)
        by_single = partial(http.measure, single, 1, SINGLE_CALLERS)
        _ledger(board, CHUNK)  # statements are made and plans are known
        http.measure(CHUNK, CHUNK, 1)
        http.measure(SINGLE_CALLERS, 1, SINGLE_CALLERS)
        found = Rounds({LEDGER: by_ledger, BULK: by_bulk, SINGLE: by_single}, rounds)
    found.into(report)
    report.goals += [
        Goal("tasks/s in bulk by the ledger", found.medians(LEDGER)["tasks/s"], 15_000),
        Goal("tasks/s in bulk over HTTP", found.medians(BULK)["tasks/s"], 5000),
        Goal("tasks/s one by one, one API process", found.medians(SINGLE)["tasks/s"], 1000),
    ]
    return report


class OverHttp:
    """One API process, and callers who send to it."""

    def __init__(self, board: MeasuredBoard, api: BoardProcess) -> None:
        self._board, self._api = board, api
        self._numbers = itertools.count()

    def measure(self, tasks: int, at_once: int, callers: int) -> Figures:
        requests = [self._request(at_once) for _ in range(tasks // at_once)]
        computed = partial(cpu_seconds, self._api.pid)
        return _taken(self._board, tasks, lambda: send_all(self._api.url, requests, callers), computed)

    def _request(self, at_once: int) -> bytes:
        bodies = [{"type": "echo", "task_id": f"h-{next(self._numbers)}", "payload": PAYLOAD} for _ in range(at_once)]
        if at_once == 1:
            return request(self._api.url, "/api/v1/tasks", API_KEY, json.dumps(bodies[0]).encode())
        return request(self._api.url, "/api/v1/tasks/bulk", API_KEY, json.dumps({"tasks": bodies}).encode())


def _ledger(board: MeasuredBoard, tasks: int) -> Figures:
    def put_in() -> None:
        for _ in range(tasks // CHUNK):
            board.fill(CHUNK)

    return _taken(board, tasks, put_in, time.process_time)


def _taken(board: MeasuredBoard, tasks: int, put_in: Callable[[], None], computed: Callable[[], float]) -> Figures:
    """computed: the CPU seconds of the process that takes the tasks in."""
    server = PostgresMeter(board.url)
    commits, begun, mine, its = board.commits("created"), time.perf_counter(), computed(), server.seconds()
    put_in()
    seconds, mine, its = time.perf_counter() - begun, computed() - mine, server.seconds() - its
    return {
        "tasks/s": tasks / seconds,
        "board CPU ms/task": mine / tasks * 1000,
        "PostgreSQL CPU ms/task": its / tasks * 1000,
        "commits/task": (board.commits("created") - commits) / tasks,
    }
