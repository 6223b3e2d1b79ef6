"""Limits over real worker processes, by the attempts that they leave behind."""

from __future__ import annotations

from datetime import datetime

import pytest
from sqlalchemy import select

from board.tasks.models import attempts
from tests.rig.working import OpenWorking, Probe, WorkingBoard
from tests.worker.conftest import StartWorker
from tests.worker.worker_process import trial

TASKS = 40


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    """The same board in this process: it puts work in and looks on, and does none itself."""
    return working(Probe(trial, name="trial"), start=False)


def most_at_once(board: WorkingBoard) -> int:
    """How many attempts overlapped; an end counts before a beginning of the same moment."""
    with board.board.db.read() as connection:
        spans = connection.execute(select(attempts.c.started_at, attempts.c.finished_at)).all()
    moments: list[tuple[datetime, int]] = [(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans]
    running = most = 0
    for _, step in sorted(moments):
        running += step
        most = max(most, running)
    return most


def workers_of(board: WorkingBoard) -> set[str]:
    with board.board.db.read() as connection:
        return set(connection.execute(select(attempts.c.worker)).scalars())


def test_two_workers_together_run_no_more_than_the_limit(board: WorkingBoard, worker: StartWorker) -> None:
    board.type(use="trial", limits={"concurrency": 3})
    first, second = worker(), worker()  # both are there before the work is, which one alone would do in two seconds
    names = [board.submit(f"T-{number}", payload={"sleep": 0.1}) for number in range(TASKS)]
    for name in names:
        board.wait(name, "done", timeout=60)
    assert most_at_once(board) == 3
    assert len(workers_of(board)) == 2, "both had a part in it"
    assert all(board.task(name)["lease_token"] == 1 for name in names)
    assert "ERROR" not in first.log + second.log


def test_a_killed_worker_gives_its_places_up_when_its_leases_run_out(board: WorkingBoard, worker: StartWorker) -> None:
    board.type(use="trial", limits={"concurrency": 2})
    for number in range(4):
        board.submit(f"T-{number}", payload={"sleep": 60 if number < 2 else 0})
    first = worker()
    board.until(lambda: all(board.task(it)["status"] == "running" for it in ("T-0", "T-1")), timeout=30)
    worker()
    first.kill()
    for number in range(4):  # the first two sleep in their first attempt only
        board.wait(f"T-{number}", "done", timeout=30)
    assert [board.task(f"T-{number}")["crash_count"] for number in range(4)] == [1, 1, 0, 0]
    assert most_at_once(board) == 2
