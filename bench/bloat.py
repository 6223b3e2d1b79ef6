"""Whether the tables stay as large as what is in them: a week of work, in which what is old goes to the archive.

The board's clock goes ahead a day at a time. Autovacuum looks once a second instead of once a minute, as a day takes
seconds here; when it acts is up to the tables' own settings.
"""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import text

from bench.blocks import blocks
from bench.boards import MeasuredBoard, measured
from bench.growth import BATCH, claim
from bench.report import Figures, Goal, Report
from bench.stand import Stand
from tests.heart import settable_clock

NAME = "bloat"
DAY = 86400.0
KEPT_DAYS = 2
VACUUM_SECONDS = 5.0  # so long after a day's work autovacuum has begun, if there is something for it to do
TABLES = "'tasks', 'task_data', 'task_events', 'attempts'"
_STATE = f"""
SELECT sum(pg_total_relation_size(relid)) / 1e6, sum(n_dead_tup), sum(n_live_tup), sum(autovacuum_count)
FROM pg_stat_user_tables WHERE relname IN ({TABLES})
"""


def run(stand: Stand, *, days: int = 7, tasks: int = 3000, patience: float = VACUUM_SECONDS) -> Report:
    """tasks: of each day."""
    report = Report(NAME)
    kept = {"retention": f"{KEPT_DAYS}d"}
    with (
        stand.eager_vacuum(),
        measured(stand, stand.postgres(), kept, concurrency=100) as board,
        settable_clock(board.board.db) as at,
    ):
        consumer = board.board.make_consumer()
        consumer.start()
        for day in range(days):
            at(day * DAY)
            board.fill(tasks)
            board.wait_until_done()
            gone = sum(board.board.archive.run().archived.values())
            time.sleep(patience)
            report.rows[f"day {day + 1}"] = {"archived": gone, **_state(board)}
        consumer.stop()
        board.fill(BATCH)
        with blocks(board.board.db) as counting:
            claim(board)
        report.rows["then a claim"] = {"blocks/claim": counting.counted}
    steady, last = report.rows[f"day {min(days, KEPT_DAYS + 2)}"], report.rows[f"day {days}"]
    grown = last["size MB"] / steady["size MB"]
    report.goals.append(Goal("size on the last day to the first that archives", grown, 1.25, at_least=False))
    report.goals.append(Goal("dead rows to a day's tasks", last["dead rows"] / tasks, 2.0, at_least=False))
    return report


def _state(board: MeasuredBoard) -> Figures:
    with board.board.db.read() as connection:
        size, dead, live, vacuumed = connection.execute(text(_STATE)).one()
    found: dict[str, Any] = {"size MB": size, "live rows": live, "dead rows": dead, "vacuumed": vacuumed}
    return {name: float(value) for name, value in found.items()}
