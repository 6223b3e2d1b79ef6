"""One attempt from claim to settlement, in a real consumer on both databases."""

import asyncio
import threading
import time
from typing import Any

import pytest

from board.ports import Cause, ErrorClass, Failure, Job, Outcome, Success, UnknownOutcome
from board.queue import live
from tests.rig.working import Gate, OpenWorking, Probe


async def succeed(job: Job) -> Outcome:
    return Success(result={"answer": job.payload})


async def boom(job: Job) -> Outcome:
    raise RuntimeError("the secret is s3cr3t-value")


def test_a_success_is_done_with_its_result(working: OpenWorking) -> None:
    board = working(Probe(succeed))
    board.type()
    board.submit("T-1", payload={"name": "线索"})
    task = board.wait("T-1", "done")
    assert board.data()["result"] == {"answer": {"name": "线索"}}
    assert (task["retry_count"], task["lease_owner"], task["last_error"]) == (0, None, None)
    assert board.kinds() == ["created", "started", "done"]
    [attempt] = board.attempts()
    assert attempt["outcome"] == "succeeded"
    assert attempt["finished_at"] >= attempt["started_at"]


def test_an_exception_is_retried_then_failed(working: OpenWorking) -> None:
    board = working(Probe(boom))
    board.type(retry={"max": 2})
    board.submit()
    task = board.wait("T-1", "failed")
    assert (task["retry_count"], task["error_class"], task["error_cause"]) == (2, "transient", "unknown")
    assert task["last_error"] == "The handler probe failed: RuntimeError. The log has the details."
    assert "s3cr3t" not in board.dump()
    assert [attempt["outcome"] for attempt in board.attempts()] == ["failed"] * 3
    assert board.kinds() == ["created", *["started", "retry_planned"] * 2, "started", "failed"]


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), TimeoutError("of its own"), asyncio.CancelledError()]
)
def test_whatever_a_handler_raises_the_worker_lives_on(working_sqlite: OpenWorking, error: Any) -> None:
    async def leave(job: Job) -> Outcome:
        if job.task_id == "T-1":
            raise error
        return Success()

    board = working_sqlite(Probe(leave))
    board.type(retry={"max": 0})
    board.submit("T-1")
    task = board.wait("T-1", "failed")
    assert "time-out" not in task["last_error"]
    board.submit("T-2")
    board.wait("T-2", "done")


def test_a_time_out_ends_the_attempt(working: OpenWorking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("board.worker.run.GRACE_AFTER_TIMEOUT", 0.05)
    cancelled = threading.Event()

    async def hang(job: Job) -> Outcome:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return Success()

    board = working(Probe(hang))
    board.type(handler={"timeout": "100ms"}, retry={"max": 0})
    board.submit()
    task = board.wait("T-1", "failed")
    assert (task["error_class"], task["error_cause"]) == ("transient", "timeout")
    assert task["last_error"] == "No result within the type's time-out of 0.1 s."
    assert cancelled.is_set()


def test_an_unknown_outcome_asks_a_person_and_holds_no_slot(working: OpenWorking) -> None:
    async def lose(job: Job) -> Outcome:
        if job.task_id != "T-1":
            return Success()
        await job.send(kind="probe.call", target="the printer", request=b"print")
        return UnknownOutcome("The answer was lost.")

    board = working(Probe(lose, side_effects=True), concurrency=1)
    board.type()
    board.submit("T-1")
    task = board.wait("T-1", "needs_review")
    assert (task["error_class"], task["retry_count"]) == ("unknown", 0)
    [review] = board.reviews()
    [operation] = board.operations()
    assert (review["reason"], review["operation"]) == ("unknown_outcome", operation["id"])
    assert operation["status"] == "unknown"
    board.submit("T-2")
    board.wait("T-2", "done")


def test_an_unknown_outcome_without_side_effects_is_tried_again(working: OpenWorking) -> None:
    async def lose_once(job: Job) -> Outcome:
        await job.send(kind="probe.call", target="the judge", request=b"judge")
        return UnknownOutcome("Lost.") if job.attempt == 1 else Success(result=job.attempt)

    board = working(Probe(lose_once))
    board.type()
    board.submit()
    assert board.wait("T-1", "done")["retry_count"] == 1
    [operation] = board.operations()
    assert (operation["status"], operation["tries"]) == ("confirmed", 2)


@pytest.mark.parametrize(
    "unusable",
    [
        Success(result={"x": object()}),
        Success(result=10**5000),
        Success(tokens=10**30),
        Success(judgement=["no", "object"]),  # type: ignore[arg-type]
    ],
    ids=["no JSON", "long number", "many tokens", "judgement of another shape"],
)
def test_an_outcome_that_cannot_be_stored_fails_the_task(working: OpenWorking, unusable: Success) -> None:
    async def answer(job: Job) -> Outcome:
        return unusable

    board = working(Probe(answer))
    board.type(handler={"judgement": {"summary": "s"}})
    board.submit()
    task = board.wait("T-1", "failed")
    assert (task["error_class"], task["error_cause"]) == ("permanent", "bad_output")
    assert task["last_error"].startswith("The handler's outcome cannot be stored: ")
    assert board.attempts()[0]["outcome"] == "failed"


def test_an_outcome_that_cannot_be_stored_after_a_call_asks_a_person(working: OpenWorking) -> None:
    async def answer(job: Job) -> Outcome:
        await job.send(kind="probe.call", target="the printer", request=b"print")
        return Success(result={"x": object()})

    board = working(Probe(answer))
    board.type()
    board.submit()
    board.wait("T-1", "needs_review")
    assert board.operations()[0]["status"] == "unknown"


def test_text_that_no_database_takes_does_not_hurt(working: OpenWorking) -> None:
    async def answer(job: Job) -> Outcome:
        bad = "a\x00b\ud800c"
        return Success(
            result={bad: [bad, float("nan")]},
            judgement={"summary": bad, "reasons": [bad], "confidence": float("inf")},
            raw_text=bad,
            cost="0.002 USD " * 20,
            reference=bad,
        )

    board = working(Probe(answer))
    board.type()
    board.submit()
    board.wait("T-1", "done")
    data = board.data()
    assert data["result"] == {"a�b�c": ["a�b�c", None]}
    assert data["judgement"]["summary"] == "a�b�c"
    assert data["judgement"]["confidence"] is None
    [attempt] = board.attempts()
    assert (attempt["raw_text"], attempt["reference"], len(attempt["cost"])) == ("a�b�c", "a�b�c", 40)


def test_a_failure_text_that_no_database_takes_does_not_hurt(working: OpenWorking) -> None:
    async def answer(job: Job) -> Outcome:
        return Failure(ErrorClass.PERMANENT, Cause.UNKNOWN, "bad \x00 " * 300, raw_text="\udfff")

    board = working(Probe(answer))
    board.type()
    board.submit()
    task = board.wait("T-1", "failed")
    assert task["last_error"].startswith("bad � bad")
    assert len(task["last_error"]) <= 1000


def test_up_to_the_concurrency_at_once_and_never_more(working: OpenWorking) -> None:
    full, gate = Gate(), Gate()
    now, most = 0, 0

    async def count(job: Job) -> Outcome:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == 3:
            full.open()
        await gate.passed()
        now -= 1
        return Success()

    board = working(Probe(count), concurrency=3)
    board.type()
    for number in range(8):
        board.submit(f"T-{number}")
    full.wait()
    gate.open()
    for number in range(8):
        board.wait(f"T-{number}", "done")
    assert most == 3


@pytest.mark.alone
def test_new_work_starts_at_once_not_at_the_next_poll(working: OpenWorking) -> None:
    began: dict[str, float] = {}

    async def note(job: Job) -> Outcome:
        began[job.task_id] = time.monotonic()
        return Success()

    board = working(Probe(note))
    board.type()
    delays = []
    for number in range(8):
        submitted = time.monotonic()
        board.submit(f"T-{number}")
        board.wait(f"T-{number}", "done")
        delays.append(began[f"T-{number}"] - submitted)
    assert sorted(delays)[4] < 0.3, delays  # polling alone would take 0.5 s on average


def test_one_slot_is_kept_for_a_rush_order(working: OpenWorking) -> None:
    gate = Gate()

    async def hold(job: Job) -> Outcome:
        if job.priority != "P0":
            await gate.passed()
        return Success()

    board = working(Probe(hold), concurrency=4)
    board.type()
    for number in range(5):
        board.submit(f"T-{number}", priority="P1")
    board.until(lambda: sum(board.task(f"T-{number}")["status"] == "running" for number in range(5)) == 3)
    board.submit("rush", priority="P0")
    board.wait("rush", "done")
    assert sum(board.task(f"T-{number}")["status"] == "running" for number in range(5)) == 3
    gate.open()
    for number in range(5):
        board.wait(f"T-{number}", "done")


def test_each_lane_in_its_turn_then_age_when_slots_are_few(working: OpenWorking) -> None:
    order: list[str] = []
    gate = Gate()

    async def note(job: Job) -> Outcome:
        if job.task_id == "first":
            await gate.passed()
        order.append(job.task_id)
        return Success()

    board = working(Probe(note), concurrency=1)
    board.type()
    board.submit("first")
    board.until(lambda: board.task("first")["status"] == "running")
    for name, priority in [("a3", "P3"), ("b2", "P2"), ("c2", "P2"), ("d0", "P0"), ("e1", "P1"), ("f0", "P0")]:
        board.submit(name, priority=priority)
    gate.open()
    board.wait("a3", "done")
    assert order == ["first", "d0", "f0", "e1", "b2", "c2", "a3"]


def test_templates_fill_the_inputs_and_a_broken_one_says_so(working_sqlite: OpenWorking) -> None:
    probe = Probe(succeed)
    board = working_sqlite(probe)
    board.type(
        handler={
            "inputs": {"text": "{{ payload.message }}", "n": "{{ payload.n }}", "old": "{{ review.former_output }}"}
        }
    )
    board.type("broken", handler={"inputs": {"text": "{{ payload.n // 0 }}"}})
    board.submit("T-1", payload={"message": "hello", "n": 7})
    board.wait("T-1", "done")
    assert probe.seen[0].inputs == {"text": "hello", "n": 7, "old": ""}
    board.submit("T-2", type="broken", payload={"n": 7})
    task = board.wait("T-2", "failed")
    assert (task["error_cause"], task["retry_count"]) == ("precondition", 0)
    assert "payload.n // 0" in task["last_error"]


def test_a_schema_that_never_ends_asks_a_person_and_harms_no_worker(working_sqlite: OpenWorking) -> None:
    board = working_sqlite(Probe(succeed))
    board.type(handler={"output_schema": {"$ref": "#"}})
    board.submit()
    board.wait("T-1", "needs_review")
    assert board.reviews()[-1]["reason"] == "invalid_output"


def test_a_call_under_way_is_not_called_failed_where_nobody_can_ask(working: OpenWorking) -> None:
    """The handler was removed from the worker while its call was out."""
    sent = Gate()

    async def call(job: Job) -> Outcome:
        await job.send(kind="probe.call", target="the printer", request=b"print")
        sent.open()
        await asyncio.sleep(60)
        return Success()

    first = working(Probe(call))
    first.type()
    first.submit()
    sent.wait()
    first.stop()
    second = working()
    task = second.wait("T-1", "needs_review")
    assert "No handler “probe” is installed" in task["last_error"]
    [review], [operation] = second.reviews(), second.operations()
    assert (review["reason"], review["operation"], operation["status"]) == (
        "unknown_outcome",
        operation["id"],
        "unknown",
    )


def test_work_is_left_to_a_worker_that_has_its_handler(working: OpenWorking) -> None:
    """So that new types may come before the last worker is upgraded."""
    without = working()
    able = working(Probe(succeed), start=False)
    able.type()
    without.until(lambda: without.board.consumer is not None and "trial" in without.board.consumer._claimer.beyond)
    able.submit()
    without.type("other", "echo")
    without.submit("T-2", "other")
    without.wait("T-2", "done")
    assert without.task()["status"] == "pending"
    able.start()
    able.wait("T-1", "done")


def test_a_worker_that_starts_while_the_queue_is_paused_takes_nothing(working: OpenWorking) -> None:
    first = working(Probe(succeed), start=False)
    first.type()
    first.submit()
    with first.board.db.write() as tx:
        live.change(tx, "user:li", lambda rules: rules.model_copy(update={"paused": True}))
    first.start()
    consumer = first.board.consumer
    assert consumer is not None
    first.until(lambda: consumer._claimer.rules is not None and not consumer._work_wanted.is_set())
    assert first.attempts() == []
    with first.board.db.write() as tx:
        live.change(tx, "user:li", lambda rules: rules.model_copy(update={"paused": False}))
    first.wait("T-1", "done")
