"""What processes use that have nothing to do."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.boards import measured
from bench.meter import cpu_seconds, resident_mb
from bench.report import Goal, Report
from bench.stand import Stand

NAME = "idle"
MOST_MB, MOST_CPU = 150, 1  # of each process; CPU in percent of one core


ROLES = ("api", "worker", "up")


def run(stand: Stand, *, roles: Sequence[str] = ROLES, settle: float = 10.0, seconds: float = 30.0) -> Report:
    """settle: seconds after the start that do not count. seconds: how long is looked."""
    report = Report(NAME)
    with measured(stand, stand.postgres()) as board:
        processes = {role: board.workers(1, slots=16)[0] if role == "worker" else board.start(role) for role in roles}
        time.sleep(settle)
        begun, before = time.monotonic(), {role: cpu_seconds(it.pid) for role, it in processes.items()}
        time.sleep(seconds)
        looked = time.monotonic() - begun
        for role, it in processes.items():
            used = (cpu_seconds(it.pid) - before[role]) / looked * 100
            report.rows[role] = {"memory MB": resident_mb(it.pid), "CPU %": used}
        for it in processes.values():
            it.stop()
    most = {figure: max(row[figure] for row in report.rows.values()) for figure in ("memory MB", "CPU %")}
    report.goals += [
        Goal("memory of the largest, in MB", most["memory MB"], MOST_MB, at_least=False),
        Goal("CPU of the busiest, in percent", most["CPU %"], MOST_CPU, at_least=False),
    ]
    return report
