"""How much is claimed beyond the slots, and what becomes of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from board.ports import Cause, ErrorClass, Failure, Job, Outcome, Success
from board.tasks.bodies import TaskIn
from board.worker.ahead import MOST_AHEAD, SWIFT_SECONDS, Ahead
from tests.rig.working import CALLER, Gate, OpenWorking, Probe, WorkingBoard

FAILED = Failure(ErrorClass.PERMANENT, Cause.UNKNOWN, "No.")


def row(type_name: str = "quick", phase: str = "work") -> Any:
    return {"type": type_name, "type_version": 1, "phase": phase}


def swift(slots: int = 4) -> Ahead:
    """Of a worker that has seen work of one type end at once."""
    ahead = Ahead(slots)
    ahead.learn(row(), 0.0, Success())
    return ahead


def test_what_is_not_known_is_not_claimed_ahead() -> None:
    ahead = Ahead(4)
    ahead.claimed([row()] * 4, 4)
    assert ahead.most == 0


def test_more_and_more_while_nothing_else_comes() -> None:
    ahead = swift()
    grown = []
    for _ in range(8):
        ahead.claimed([row()] * (4 + ahead.most), 4 + ahead.most)
        grown.append(ahead.most)
    assert grown == [4, 8, 16, 32, 64, 128, MOST_AHEAD, MOST_AHEAD]


def test_an_empty_line_is_no_reason_to_claim_more() -> None:
    ahead = swift()
    ahead.claimed([], 0)
    ahead.claimed([row()] * 3, 4)
    assert ahead.most == 0


def test_the_first_task_of_another_kind_ends_it() -> None:
    ahead = swift()
    ahead.claimed([row()] * 4, 4)
    assert ahead.most == 4
    ahead.claimed([row(), row("slow")], 8)
    assert ahead.most == 0
    assert not ahead.swift(row(phase="act"))


def test_one_slow_attempt_ends_it_and_a_moment_of_another_thread_does_not() -> None:
    ahead = swift()
    ahead.learn(row(), 5 * SWIFT_SECONDS, Success())
    assert ahead.swift(row())
    ahead = swift()
    ahead.learn(row(), 1.0, Success())
    assert not ahead.swift(row())
    ahead.learn(row(), 0.0, Success())
    assert ahead.swift(row())
    for _ in range(3):
        ahead.learn(row(), 1.0, Success())
    for _ in range(2):
        ahead.learn(row(), 0.0, Success())
    assert not ahead.swift(row())


def test_what_fails_at_once_is_not_taken_for_quick() -> None:
    ahead = swift()
    ahead.learn(row(), 0.0, FAILED)
    assert not ahead.swift(row())
    ahead.learn(row(), 0.0, None)
    assert not ahead.swift(row())


# -- at work ----------------------------------------------------------------------------------------------------------


def put(board: WorkingBoard, *task_ids: str, **body: Any) -> None:
    """All in one transaction, so that one claim finds them all."""
    with board.board.db.write() as tx:
        bodies = [TaskIn(type="trial", task_id=task_id, **body) for task_id in task_ids]
        items = [(it, board.board.intake.prepare(tx, it, CALLER)) for it in bodies]
        board.board.intake.store(tx, items, CALLER)


def warm(board: WorkingBoard, most: int = 10) -> list[str]:
    """Quick work, until so much more is claimed ahead."""
    consumer = board.board.consumer
    assert consumer is not None
    names: list[str] = []
    while consumer.holding.ahead.most < most:
        assert len(names) < 2000, "it never came to that"
        some = [f"quick-{len(names) + number:03}" for number in range(40)]
        put(board, *some)
        for name in some:
            board.wait(name, "done")
        names += some
    return names


def test_work_that_ends_at_once_is_claimed_beyond_the_slots_and_never_runs_beyond_them(working: OpenWorking) -> None:
    now, most = 0, 0

    async def count(job: Job) -> Outcome:
        nonlocal now, most
        now += 1
        most = max(most, now)
        now -= 1
        return Success()

    board = working(Probe(count), concurrency=2, reserved_p0_slots=0)
    board.type()
    names = warm(board)
    together = Counter(board.events(name)[1]["at"] for name in names)  # a claim has one time for all it takes
    assert max(together.values()) > 4
    assert most == 1
    for name in names:
        assert board.kinds(name) == ["created", "started", "done"]
        assert [attempt["outcome"] for attempt in board.attempts(name)] == ["succeeded"]


def test_what_waits_behind_work_that_does_not_end_is_handed_back(working: OpenWorking) -> None:
    gate = Gate()

    async def run(job: Job) -> Outcome:
        if job.task_id == "a-blocker":
            await gate.passed()
        return Success()

    board = working(Probe(run), concurrency=2, reserved_p0_slots=1)
    board.type()
    warm(board)
    behind = [f"behind-{number}" for number in range(5)]
    put(board, "a-blocker", *behind)  # the other slot is kept for P0
    for name in behind:
        board.until(lambda name=name: "handed_back" in board.kinds(name))  # type: ignore[misc]
        assert board.task(name)["retry_count"] == 0
        assert board.attempts(name)[0]["outcome"] == "handed_back"
    board.submit("rush", priority="P0")
    board.wait("rush", "done")
    assert board.task("a-blocker")["status"] == "running"
    gate.open()
    for name in ("a-blocker", *behind):
        board.wait(name, "done")


def test_at_a_stop_what_waits_is_handed_back(working: OpenWorking) -> None:
    began = Gate()

    async def run(job: Job) -> Outcome:
        if job.task_id == "a-blocker":
            began.open()
            await Gate().passed()
        return Success()

    board = working(Probe(run), concurrency=2, reserved_p0_slots=1)
    board.type()
    warm(board)
    behind = [f"behind-{number}" for number in range(5)]
    put(board, "a-blocker", *behind)
    began.wait()
    board.stop()
    for name in ("a-blocker", *behind):
        assert board.task(name)["status"] == "pending"
        assert board.kinds(name)[-1] == "handed_back"
