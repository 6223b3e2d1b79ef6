"""One attempt of `dify.workflow`, against the stand-in over a real socket."""

from __future__ import annotations

import asyncio
import json

import pytest

from board.ports import (
    AlreadyConfirmed,
    Cause,
    ErrorClass,
    Failure,
    OperationConflict,
    Stopped,
    Success,
)
from integrations.dify import handlers
from tests.integrations.dify.attempt import LABELLED, run
from tests.integrations.dify.conftest import Standin


async def test_a_run_that_goes_well(standin: Standin) -> None:
    job = standin.job(user="board:7:3", output_schema=LABELLED)
    outcome = await run(job)
    assert isinstance(outcome, Success)
    assert outcome.ask is None
    assert outcome.result["label"] in ("hot", "warm", "cold", "spam")
    assert outcome.raw_text == "".join(job.texts) != ""
    assert outcome.tokens is not None
    assert outcome.tokens > 0
    [started] = standin.seen()["runs"]
    assert job.references == [outcome.reference] == [started["id"]]
    assert job.steps == ["Start", "Judge", "End"]
    [request] = standin.runs_asked_for()
    assert request["body"] == {"inputs": job.inputs, "response_mode": "streaming", "user": "board:7:3"}
    [announced] = job.sent
    assert announced["kind"] == "dify.run"
    assert "leads" in announced["target"]
    assert json.loads(announced["request"]) == request["body"]


async def test_what_was_judged_before_is_taken_from_dify_and_not_paid_twice(standin: Standin) -> None:
    first = await run(standin.job())
    job = standin.job(refusal=AlreadyConfirmed(first.reference))
    again = await run(job)
    assert isinstance(again, Success)
    assert (again.result, again.reference) == (first.result, first.reference)
    assert len(standin.runs_asked_for()) == 1


@pytest.mark.parametrize("reference", [None, "5f9f1f9e-0000-4000-8000-000000000000"])
async def test_what_was_judged_before_and_is_gone_is_told(standin: Standin, reference: str | None) -> None:
    outcome = await run(standin.job(refusal=AlreadyConfirmed(reference), grace=0.1))
    assert isinstance(outcome, Failure)
    assert outcome.error_class is ErrorClass.PERMANENT
    assert standin.runs_asked_for() == []


async def test_a_conflict_with_another_task_is_told_and_a_lost_lease_ends_quietly(standin: Standin) -> None:
    outcome = await run(standin.job(refusal=OperationConflict("The key belongs to task x.")))
    assert outcome == Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, "The key belongs to task x.")
    with pytest.raises(Stopped):
        await run(standin.job(refusal=Stopped()))
    assert standin.runs_asked_for() == []


async def test_a_pinned_version(standin: Standin) -> None:
    outcome = await run(standin.job(options={"workflow_id": "7d444840-9dc0-11d1-b245-5ffdce74fad2"}))
    assert isinstance(outcome, Failure)
    assert (outcome.code, outcome.error_class) == ("not_found", ErrorClass.PERMANENT)


async def test_a_cancelled_attempt_stops_at_once_and_cleanly(standin: Standin) -> None:
    standin.faults("stall")
    job = standin.job()
    task = asyncio.create_task(run(job))
    async with asyncio.timeout(5):
        await job.started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(job.references) == 1


def test_registration_and_check() -> None:
    handler, *others = handlers()
    assert [it.name for it in others] == ["dify.chat", "dify.completion"]
    assert (handler.name, handler.connection_kind, handler.side_effects) == ("dify.workflow", "dify", False)
    assert handler.check({"use": "dify.workflow", "connection": "leads", "inputs": {"a": "{{ x }}"}}) == []
    assert handler.check({"use": "dify.workflow", "connection": "leads", "inputs": None}) == []
    assert [path for path, _ in handler.check({"inputs": ["a"], "workflow_id": 5})] == ["inputs", "workflow_id"]
