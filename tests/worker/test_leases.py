"""Leases: kept while somebody works, lost when nobody does, and a late result never counts."""

import asyncio
import threading
import time

import pytest
from sqlalchemy import update

from board.db.clock import now
from board.ports import Job, Outcome, Success
from board.queue.ledger_queue import SUSPECT_PATIENCE
from board.tasks.bodies import TaskIn
from board.tasks.models import tasks
from board.upkeep import sweep
from board.worker import consumer
from tests.rig.receiver import Receiver
from tests.rig.working import CALLER, Gate, OpenWorking, Probe, WorkingBoard

# A loop with a handler that nobody could end; collected as garbage it would complain in the middle of another test.
_KEPT: list[WorkingBoard] = []


def lose_lease(board: WorkingBoard, task_id: str = "T-1") -> None:
    """As if the worker had been silent for longer than its lease: another process's sweep takes the task away."""
    with board.board.db.write() as tx:
        tx.execute(update(tasks).where(tasks.c.task_id == task_id).values(lease_until=now(-1)))
    sweep.rescue_leases(board.board.db, board.board.ledger, board.board.catalogue)
    # By this sweep, or by one of the worker's own at the same moment, which this one does not wait for.
    board.until(lambda: "lease_lost" in board.kinds(task_id))


@pytest.mark.alone
def test_heartbeats_keep_a_task_that_takes_longer_than_its_lease(working: OpenWorking) -> None:
    """B027: one execution while heartbeats run, though a second worker sweeps."""

    async def work(job: Job) -> Outcome:
        await asyncio.sleep(2.5)
        return Success()

    probe = Probe(work)
    board = working(probe, lease="1s")
    working(probe, lease="1s")
    board.type()
    board.submit()
    board.wait("T-1", "done")
    assert board.kinds() == ["created", "started", "done"]
    assert len(probe.seen) == 1


@pytest.mark.alone
def test_pure_computing_loses_no_lease_and_takes_no_further_work(working: OpenWorking) -> None:
    """B027: the handler blocks its loop for longer than the lease; what was claimed beside it is kept as well."""
    began = Gate()

    async def work(job: Job) -> Outcome:
        if job.task_id == "T-1":
            began.open()
            until = time.monotonic() + 2.2
            while time.monotonic() < until:
                pass
        return Success()

    board = working(Probe(work), lease="1s")
    board.type()
    board.submit("T-1")
    began.wait()
    for number in range(2, 6):
        board.submit(f"T-{number}")
    for number in range(1, 6):
        task = board.wait(f"T-{number}", "done")
        assert (task["crash_count"], task["lease_token"]) == (0, 1)
        assert board.kinds(f"T-{number}") == ["created", "started", "done"]


def test_a_handler_that_never_comes_back_keeps_no_lease(working: OpenWorking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "STUCK_SECONDS", 1.5)
    release = threading.Event()

    async def work(job: Job) -> Outcome:
        if job.attempt == 1:
            release.wait(30)
        return Success(result=job.attempt)

    probe = Probe(work)
    board = working(probe, lease="1s")
    board.type()
    board.submit()
    board.until(lambda: board.task()["status"] == "running")
    other = working(probe, lease="1s")
    task = other.wait("T-1", "done")
    release.set()
    assert (task["crash_count"], other.data()["result"]) == (1, 2)
    board.until(lambda: "stale_result" in board.kinds())


def test_the_result_of_a_lost_lease_is_refused_and_recorded(working: OpenWorking, receiver: Receiver) -> None:
    gate, began = Gate(), Gate()

    async def work(job: Job) -> Outcome:
        if job.attempt == 1:
            began.open()
            await gate.passed()
        return Success(result=job.attempt)

    board = working(Probe(work))
    board.type()
    board.submit(callback_url=receiver.url)
    began.wait()
    lose_lease(board)
    task = board.wait("T-1", "done")
    assert (task["crash_count"], task["retry_count"]) == (1, 0)
    gate.open()
    board.until(lambda: "stale_result" in board.kinds())
    assert board.task()["status"] == "done"
    assert board.data()["result"] == 2
    assert [attempt["outcome"] for attempt in board.attempts()] == ["lease_lost", "succeeded"]
    assert board.kinds() == ["created", "started", "lease_lost", "started", "done", "stale_result"]
    receiver.wait_for(1)
    board.until(lambda: board.operations()[0]["status"] == "confirmed")
    assert len(receiver.requests) == 1


def test_a_handler_hears_that_its_lease_is_lost(working: OpenWorking) -> None:
    began, ended = Gate(), Gate()

    async def work(job: Job) -> Outcome:
        began.open()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.open()
            raise
        return Success()

    board = working(Probe(work), lease="1s")
    board.type()
    board.submit()
    began.wait()
    with board.board.db.write() as tx:  # the sweep and another worker's claim in one go
        row = board.board.ledger.lock(tx, board.task()["id"])
        tx.execute(update(tasks).where(tasks.c.id == row["id"]).values(lease_token=2, lease_owner="other"))
    ended.wait()
    board.until(lambda: "stale_result" in board.kinds())
    assert board.task()["status"] == "running"
    assert board.task()["lease_owner"] == "other"


@pytest.mark.alone
def test_a_cancelled_task_stops_within_two_seconds(working: OpenWorking, receiver: Receiver) -> None:
    """Asked through the database only, as another process does it."""
    began, ended = Gate(), Gate()

    async def work(job: Job) -> Outcome:
        began.open()
        try:
            await asyncio.sleep(60)
        finally:
            ended.open()
        return Success()

    board = working(Probe(work))
    board.type()
    board.submit(callback_url=receiver.url)
    began.wait()
    asked = time.monotonic()
    board.cancel("T-1")
    ended.wait(2.5)
    assert time.monotonic() - asked < 2.5
    task = board.wait("T-1", "cancelled")
    assert task["cancel_requested"] is False
    assert board.kinds() == ["created", "started", "cancel_requested", "cancelled"]
    assert board.attempts()[0]["outcome"] == "cancelled"
    assert [request.body.count(b"task.cancelled") for request in receiver.wait_for(1)] == [1]


def test_a_result_that_comes_after_the_cancellation_is_refused(working: OpenWorking, receiver: Receiver) -> None:
    """B025: the task stays cancelled, no result is shown, no `done` goes out; what happened outside is on record."""
    began, gate = Gate(), Gate()

    async def work(job: Job) -> Outcome:
        await job.send(kind="probe.call", target="the printer", request=b"x")
        began.open()
        await gate.passed()
        return Success(result="late", reference="run-1")

    board = working(Probe(work))
    board.type()
    board.submit(callback_url=receiver.url)
    began.wait()
    board.cancel("T-1")
    gate.open()
    board.wait("T-1", "cancelled")
    assert board.data()["result"] is None
    assert board.events()[-1]["kind"] == "cancelled"
    [request] = receiver.wait_for(1)
    assert b"task.cancelled" in request.body
    board.until(lambda: board.operations()[-1]["status"] == "confirmed")
    call = board.operations()[0]
    assert call["status"] in ("confirmed", "sent")  # the result was seen, or the attempt stopped before


def test_a_handler_that_ignores_the_cancellation_cannot_finish_the_task(working: OpenWorking) -> None:
    began = Gate()

    async def work(job: Job) -> Outcome:
        began.open()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return Success(result="late")
        return Success()

    board = working(Probe(work))
    board.type()
    board.submit()
    began.wait()
    board.cancel("T-1")
    board.wait("T-1", "cancelled")
    assert board.data()["result"] is None
    assert board.events()[-1]["note"] == "The attempt ended after the cancellation was asked; its result was refused."


@pytest.mark.alone
def test_a_stop_hands_back_without_burning_an_attempt(working: OpenWorking) -> None:
    began = Gate()

    async def work(job: Job) -> Outcome:
        if job.attempt == 1:
            began.open()
            await asyncio.sleep(60)
        return Success()

    probe = Probe(work)
    first = working(probe)
    first.type()
    first.submit()
    began.wait()
    started = time.monotonic()
    first.stop()
    assert time.monotonic() - started < 3
    task = first.task()
    assert (task["status"], task["retry_count"], task["crash_count"]) == ("pending", 0, 0)
    assert first.attempts()[0]["outcome"] == "handed_back"
    second = working(probe)
    assert second.wait("T-1", "done")["retry_count"] == 0
    assert second.kinds() == ["created", "started", "handed_back", "started", "done"]


def test_a_stop_lets_short_work_end(working: OpenWorking) -> None:
    began = Gate()

    async def work(job: Job) -> Outcome:
        began.open()
        await asyncio.sleep(0.3)
        return Success()

    board = working(Probe(work))
    board.type()
    board.submit()
    began.wait()
    board.stop()
    assert board.task()["status"] == "done"


@pytest.mark.alone
def test_a_stop_returns_though_a_handler_does_not(working: OpenWorking) -> None:
    """The lease then runs out, and the next worker takes the task."""
    began, release = Gate(), Gate()

    async def work(job: Job) -> Outcome:
        if job.attempt == 1:
            began.open()
            while True:
                try:
                    await release.passed()
                    break
                except asyncio.CancelledError:
                    pass
        return Success(result=job.attempt)

    probe = Probe(work)
    first = working(probe)
    first.type()
    first.submit()
    began.wait()
    started = time.monotonic()
    first.stop()
    assert time.monotonic() - started < 4
    _KEPT.append(first)
    assert first.task()["status"] == "running"
    second = working(probe)
    lose_lease(second)
    second.wait("T-1", "done")
    release.open()
    assert second.data()["result"] == 2


def test_a_worker_for_some_types_is_not_held_up_by_suspects_of_others(working: OpenWorking) -> None:
    async def work(job: Job) -> Outcome:
        return Success()

    board = working(Probe(work), start=False)
    board.type("mine")
    board.type("other")
    board.submit("suspect", type="other")
    board.submit("T-1", type="mine")
    with board.board.db.write() as tx:
        tx.execute(update(tasks).where(tasks.c.task_id == "suspect").values(suspect=True, crash_count=2))
    board.board.make_consumer(only_types=["mine"]).start()
    try:
        board.wait("T-1", "done")
        assert board.task("suspect")["status"] == "pending"
    finally:
        assert board.board.consumer is not None
        board.board.consumer.stop()


def test_a_suspect_runs_alone(working: OpenWorking) -> None:
    together: set[str] = set()
    seen: list[set[str]] = []
    began, gate = Gate(), Gate()

    async def work(job: Job) -> Outcome:
        together.add(job.task_id)
        seen.append(set(together))
        if job.task_id == "busy":
            began.open()
            await gate.passed()
        await asyncio.sleep(0.05)
        together.discard(job.task_id)
        return Success()

    board = working(Probe(work))
    board.type()
    board.submit("busy")
    began.wait()
    with board.board.db.write() as tx:
        board.board.intake.take(tx, TaskIn(type="trial", task_id="suspect"), CALLER)
        tx.execute(update(tasks).where(tasks.c.task_id == "suspect").values(suspect=True, crash_count=2))
    for number in range(3):
        board.submit(f"T-{number}")
    gate.open()
    for name in ("suspect", "T-0", "T-1", "T-2"):
        board.wait(name, "done")
    assert all(group == {"suspect"} for group in seen if "suspect" in group)


def test_a_suspect_does_not_wait_for_ever_behind_long_work(working: OpenWorking) -> None:
    began, gate = Gate(), Gate()

    async def work(job: Job) -> Outcome:
        if job.task_id == "busy":
            began.open()
            await gate.passed()
        return Success()

    board = working(Probe(work))
    board.type()
    board.submit("busy")
    began.wait()
    board.submit("suspect", run_after="2099-01-01T00:00:00Z")
    suspect = tasks.c.task_id == "suspect"
    with board.board.db.write() as tx:
        tx.execute(update(tasks).where(suspect).values(suspect=True, crash_count=2, ready_at=now()))
    board.submit("T-1")
    board.at(SUSPECT_PATIENCE - 5)
    assert board.task("suspect")["status"] == board.task("T-1")["status"] == "pending"
    board.at(SUSPECT_PATIENCE + 1)
    board.wait("suspect", "done")
    board.wait("T-1", "done")
    assert board.task("busy")["status"] == "running"
    gate.open()
    board.wait("busy", "done")
