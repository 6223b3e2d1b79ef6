"""How a run ends: streams that break off, failed and partial runs, errors in the middle; against the stand-in."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest

from board.ports import (
    Cause,
    ErrorClass,
    Failure,
    Success,
)
from tests.integrations.dify import cases
from tests.integrations.dify.attempt import GOOD, run
from tests.integrations.dify.conftest import RUN_ID, Standin


async def test_a_recorded_stream_in_its_odd_pieces(standin: Standin) -> None:
    """B015: the AI result is reached whatever the chunking; the JSON in its text is the result."""
    standin.play("d_ping_crlf_multiline.sse")
    job = standin.job(output_schema=cases.SCHEMA)
    outcome = await run(job)
    assert isinstance(outcome, Success)
    assert (outcome.result, outcome.ask, outcome.tokens, outcome.reference) == (GOOD, None, 321, RUN_ID)
    assert outcome.raw_text == json.dumps(GOOD, ensure_ascii=False)
    assert "".join(job.texts) == "你好，世界"


async def test_partial_success_asks_a_person_and_shows_the_step(standin: Standin) -> None:
    """B017"""
    standin.play("d_partial_succeeded.sse")
    outcome = await run(standin.job(output_schema=cases.SCHEMA))
    assert isinstance(outcome, Success)
    assert (outcome.ask, outcome.result) == ("partial_result", GOOD)
    assert "n2: tool timed out" in (outcome.ask_message or "")


async def test_empty_outputs_ask_a_person(standin: Standin) -> None:
    """B017"""
    standin.play("d_empty_outputs.sse")
    outcome = await run(standin.job(output_schema=cases.SCHEMA))
    assert isinstance(outcome, Success)
    assert (outcome.ask, outcome.result) == ("empty_output", {"text": ""})


async def test_a_stream_without_an_end_is_followed_by_its_id(standin: Standin) -> None:
    """B017: the run's detail is asked, nothing is started again."""
    standin.play("d_no_terminal.sse", start=True, run_id=RUN_ID, seconds=0.4)
    outcome = await run(standin.job())
    assert isinstance(outcome, Success)
    assert outcome.result["label"]
    assert outcome.raw_text == "half an answer"
    assert len(standin.runs_asked_for()) == 1


async def test_a_stream_without_an_end_whose_run_nobody_knows_failed_and_may_be_sent_again(standin: Standin) -> None:
    """B017: Dify shows neither the run nor a log row for it, also after the grace time."""
    standin.play("d_no_terminal.sse")
    outcome = await run(standin.job())
    assert isinstance(outcome, Failure)
    assert (outcome.error_class, outcome.open_operation) == (ErrorClass.TRANSIENT, False)
    assert "no run" in outcome.message


async def test_a_run_that_outlives_the_attempt_stays_open(standin: Standin) -> None:
    standin.faults("no_terminal_unknown")
    job = standin.job(timeout=1.5)
    outcome = await run(job)
    assert isinstance(outcome, Failure)
    assert (outcome.error_class, outcome.cause, outcome.open_operation) == (
        ErrorClass.TRANSIENT,
        Cause.TIMEOUT,
        True,
    )
    assert job.references[0] in outcome.message


@pytest.mark.alone
async def test_an_attempt_ends_in_time_while_the_stream_is_still_alive(standin: Standin) -> None:
    standin.faults("slow", ping_every=0.1)
    job = standin.job(timeout=1.5)
    async with asyncio.timeout(1.5):
        outcome = await run(job)
    assert isinstance(outcome, Failure)
    assert (outcome.cause, outcome.open_operation) == (Cause.TIMEOUT, True)


async def test_an_error_event_under_200_is_no_success(standin: Standin) -> None:
    """B021"""
    standin.play("d_error_event_429.sse")
    outcome = await run(standin.job())
    assert isinstance(outcome, Failure)
    assert (outcome.error_class, outcome.http_status, outcome.code) == (ErrorClass.QUOTA, 429, "rate_limit_error")
    assert not outcome.open_operation


async def test_an_error_event_ends_the_call_though_dify_keeps_it_open(standin: Standin) -> None:
    standin.faults("error_event")
    async with asyncio.timeout(5):
        outcome = await run(standin.job())
    assert isinstance(outcome, Failure)
    assert outcome.error_class is ErrorClass.QUOTA


async def test_a_late_refusal_of_inputs_is_permanent_although_it_says_500(standin: Standin) -> None:
    standin.faults("error_event_no_code")
    outcome = await run(standin.job())
    assert isinstance(outcome, Failure)
    assert (outcome.error_class, outcome.cause) == (ErrorClass.PERMANENT, Cause.PRECONDITION)
    assert "text is required in input form" in outcome.message


async def test_an_error_event_that_says_nothing_does_not_hide_a_run_that_goes_on(standin: Standin) -> None:
    """Without code and status nobody can tell what it was about: the run's detail is asked, none is started again."""
    said: list[dict[str, object]] = [
        {"event": "workflow_started", "task_id": "t", "workflow_run_id": RUN_ID, "data": {"id": RUN_ID}},
        {"event": "error", "message": "connection to redis lost"},
    ]
    raw = b"".join(b"data: %s\n\n" % json.dumps(it).encode() for it in said)
    fault = {"fault": "raw", "raw": base64.b64encode(raw).decode(), "start": True, "run_id": RUN_ID}
    standin.faults(fault)
    outcome = await run(standin.job())
    assert isinstance(outcome, Success)
    assert outcome.reference == RUN_ID
    assert len(standin.runs_asked_for()) == 1


async def test_a_failed_run_with_an_id_that_dify_does_not_know(standin: Standin) -> None:
    standin.faults("synthetic_failed")
    outcome = await run(standin.job())
    assert isinstance(outcome, Failure)
    assert outcome.error_class is ErrorClass.PERMANENT
    assert "is required in input form" in outcome.message


async def test_failed_and_stopped_runs(standin: Standin) -> None:
    standin.faults("failed", "stopped")
    failed, stopped = [await run(standin.job()) for _ in range(2)]
    assert isinstance(failed, Failure)
    assert failed.error_class is ErrorClass.UNKNOWN
    assert "The model did not answer" in failed.message
    assert isinstance(stopped, Failure)
    assert (stopped.error_class, stopped.open_operation) == (ErrorClass.PERMANENT, False)


async def test_a_server_error_inside_a_stream_asks_what_became_of_the_run(standin: Standin) -> None:
    standin.faults(
        {"fault": "error_event", "event_status": 500, "code": "internal_server_error", "status": "succeeded"}
    )
    outcome = await run(standin.job())
    assert isinstance(outcome, Success)
    assert outcome.result["label"]
