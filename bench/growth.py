"""Whether a claim takes longer where more waits: 50 tasks claimed of 1,000, and of 1,000,000."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from sqlalchemy import RowMapping

from bench.blocks import blocks
from bench.boards import MeasuredBoard, measured
from bench.crowd import crowd
from bench.report import Figures, Goal, Report, Rounds, plain
from bench.stand import Stand
from board.queue.wanted import Scope, Wanted

NAME = "growth"
BATCH = 50
FACTOR = 1.3  # a claim may take so much longer


def run(stand: Stand, *, few: int = 1000, many: int = 1_000_000, rounds: int = 11) -> Report:
    """few, many: how many tasks wait; few: more than 50 a round."""
    report = Report(NAME)
    with measured(stand, stand.postgres()) as small, measured(stand, stand.postgres()) as large:
        boards = {f"{plain(few)} waiting": small, f"{plain(many)} waiting": large}
        for board, count in ((small, few), (large, many)):
            crowd(board, count)
            for _ in range(3):
                claim(board)  # statements are made and plans are known
        found = Rounds({name: partial(_timed, board) for name, board in boards.items()}, rounds)
        found.into(report)
        for name, board in boards.items():
            with blocks(board.board.db) as counting:
                claim(board)
            report.rows[name] = {**report.rows[name], "blocks/claim": counting.counted}
    few_name, many_name = boards
    ratio = found.ratio(many_name, few_name, "ms/claim")
    report.goals.append(Goal(f"time of a claim of {BATCH}, many to few", ratio, FACTOR, at_least=False))
    return report


def claim(board: MeasuredBoard) -> Sequence[RowMapping]:
    """The rows of 50 tasks, claimed as a worker does it, with all that it writes."""
    wanted = Wanted(scope=Scope(), slots=BATCH, rest=BATCH, worker="bench", lease=3600.0)
    taken = board.board.queue.claim(wanted)
    assert len(taken.rows) == BATCH, f"{len(taken.rows)} tasks were claimed, not {BATCH}"
    return taken.rows


def _timed(board: MeasuredBoard) -> Figures:
    begun = time.perf_counter()
    claim(board)
    return {"ms/claim": (time.perf_counter() - begun) * 1000}
