"""One attempt of `dify.workflow`, against the stand-in over a real socket."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import socket
from typing import Any

import pytest

from board.ports import (
    AlreadyConfirmed,
    Cause,
    ErrorClass,
    Failure,
    Lost,
    OperationConflict,
    Refused,
    Stopped,
    Success,
    UnknownOutcome,
)
from integrations.dify import handlers
from integrations.dify.follow import Pace
from integrations.dify.workflow import Workflow
from tests.integrations.dify import cases
from tests.integrations.dify.conftest import RUN_ID, Standin
from tests.integrations.dify.doubles import NotedJob, WatchedHttp, connection

GOOD = {"decision": "approve", "score": 0.82, "reason": "清晰，尺寸合规 ✅"}
LABELLED = {"type": "object", "required": ["label"], "properties": {"label": {"type": "string"}}}


def handler() -> Workflow:
    return Workflow(Pace(first=0.05, cap=0.2))


async def run(job: NotedJob) -> Any:
    return await handler().run(job)


def free_port() -> int:
    with socket.socket() as probing:
        probing.bind(("127.0.0.1", 0))
        port: int = probing.getsockname()[1]
        return port


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


async def test_a_failed_run_with_an_id_that_dify_does_not_know(standin: Standin) -> None:
    standin.faults("synthetic_failed")
    outcome = await run(standin.job())
    assert isinstance(outcome, Failure)
    assert outcome.error_class is ErrorClass.PERMANENT
    assert "is required in input form" in outcome.message


async def test_failed_stopped_and_paused_runs(standin: Standin) -> None:
    standin.faults("failed", "stopped", "paused")
    failed, stopped, paused = [await run(standin.job()) for _ in range(3)]
    assert isinstance(failed, Failure)
    assert failed.error_class is ErrorClass.UNKNOWN
    assert "The model did not answer" in failed.message
    assert isinstance(stopped, Failure)
    assert (stopped.error_class, stopped.open_operation) == (ErrorClass.PERMANENT, False)
    assert isinstance(paused, Failure)
    assert (paused.error_class, paused.open_operation) == (ErrorClass.PERMANENT, False)
    assert "not yet supported" in paused.message


@pytest.mark.parametrize("case", cases.HTTP_ERRORS, ids=lambda case: f"{case['http']} {case['body']}"[:40])
async def test_http_errors(standin: Standin, case: dict[str, Any]) -> None:
    """B021, B013: rate limits are retried, refusals fail at once, a 504 asks for the run first."""
    html = isinstance(case["body"], str)
    answer = {"body": case["body"]} if html else {"code": case["body"]["code"], "message": case["body"]["message"]}
    standin.faults(
        {"fault": "http", "http_status": case["http"], "headers": case.get("headers", {}), **answer}
        | ({"start": True} if html else {})
    )
    job = standin.job()
    outcome = await run(job)
    assert len(standin.runs_asked_for()) == 1
    match case["http"], case["task_should"].split(",")[0]:
        case 504, _:
            assert isinstance(outcome, Success)
            assert outcome.result["label"]
            assert "html" not in str(outcome).lower()
            assert job.references == [outcome.reference]
        case _, "retrying":
            assert isinstance(outcome, Failure)
            assert outcome.error_class is ErrorClass.QUOTA
            assert outcome.retry_after == (3 if "3 s" in case["task_should"] else None)
        case _, "failed at once":
            assert isinstance(outcome, Failure)
            assert outcome.error_class is ErrorClass.PERMANENT
            assert outcome.code == case["body"]["code"]
        case other:
            pytest.fail(f"unexpected case {other}")


async def test_the_app_limit_that_comes_as_400_is_transient(standin: Standin) -> None:
    standin.faults("too_many_requests")
    outcome = await run(standin.job())
    assert isinstance(outcome, Failure)
    assert (outcome.error_class, outcome.cause) == (ErrorClass.TRANSIENT, Cause.RATE_LIMIT)


@pytest.mark.parametrize("fault", ["drop_before_id", "html_504"])
async def test_a_lost_answer_is_found_in_the_run_log(standin: Standin, fault: str) -> None:
    """B013: no second paid run while the first may live."""
    standin.faults({"fault": fault, "queue_seconds": 0.4})
    job = standin.job(grace=5)
    outcome = await run(job)
    assert isinstance(outcome, Success)
    assert outcome.result["label"]
    assert len(standin.runs_asked_for()) == 1
    assert job.references == [outcome.reference]


async def test_a_cut_after_the_first_event_is_followed_by_its_id(standin: Standin) -> None:
    standin.faults("drop_after_id")
    outcome = await run(standin.job())
    assert isinstance(outcome, Success)
    assert not [entry for entry in standin.seen()["requests"] if entry["path"].endswith("/logs")]


async def test_the_id_in_the_header_is_stored_before_any_event(standin: Standin) -> None:
    standin.faults({"fault": "drop_before_id", "run_id_header": True, "queue_seconds": 0.0})
    job = standin.job()
    outcome = await run(job)
    assert isinstance(outcome, Success)
    assert job.references == [outcome.reference]


async def test_a_call_that_started_nothing_failed_after_the_grace_time(standin: Standin) -> None:
    standin.faults("drop_not_started", {"fault": "http", "http_status": 502, "body": "<html>bad</html>"})
    for cause in (Cause.NETWORK, Cause.UPSTREAM_5XX):
        outcome = await run(standin.job(grace=0.3))
        assert isinstance(outcome, Failure)
        assert (outcome.error_class, outcome.cause, outcome.open_operation) == (ErrorClass.TRANSIENT, cause, False)
        assert "html" not in outcome.message


async def test_a_grace_time_longer_than_the_attempt_leaves_the_call_open(standin: Standin) -> None:
    standin.faults("drop_not_started")
    outcome = await run(standin.job(grace=60, timeout=1.0))
    assert isinstance(outcome, Failure)
    assert (outcome.error_class, outcome.open_operation) == (ErrorClass.TRANSIENT, True)


async def test_a_run_log_that_cannot_be_searched_proves_nothing(standin: Standin) -> None:
    standin.faults(
        "drop_not_started",
        {"fault": "http", "on": "logs", "http_status": 404, "code": "not_found", "message": "no such call"},
    )
    outcome = await run(standin.job())
    assert isinstance(outcome, UnknownOutcome)
    assert "run log" in outcome.message


async def test_a_key_that_stops_working_meanwhile_leaves_the_call_open(standin: Standin) -> None:
    standin.faults("drop_not_started", {"fault": "unauthorized", "on": "logs"})
    outcome = await run(standin.job())
    assert isinstance(outcome, Failure)
    assert (outcome.cause, outcome.open_operation) == (Cause.AUTH, True)


async def test_trouble_while_asking_is_not_taken_for_an_answer(standin: Standin) -> None:
    standin.faults(
        {"fault": "drop_before_id", "queue_seconds": 0},
        {"fault": "http", "on": "logs", "http_status": 502, "body": "<html>", "times": 2},
        {"fault": "http", "on": "detail", "http_status": 429, "code": "unknown", "times": 2},
    )
    lost = iter([True, False, True, False])

    def trouble(method: str, path: str) -> None:
        if "/workflows/run/" in path and next(lost, False):
            raise Lost("the connection broke")

    outcome = await run(standin.job(grace=0.2, http=WatchedHttp(trouble)))
    assert isinstance(outcome, Success)
    assert len(standin.runs_asked_for()) == 1


async def test_a_server_error_inside_a_stream_asks_what_became_of_the_run(standin: Standin) -> None:
    standin.faults(
        {"fault": "error_event", "event_status": 500, "code": "internal_server_error", "status": "succeeded"}
    )
    outcome = await run(standin.job())
    assert isinstance(outcome, Success)
    assert outcome.result["label"]


async def test_nothing_was_sent_when_no_connection_could_be_made() -> None:
    job = NotedJob(connection(f"http://127.0.0.1:{free_port()}/v1"), {"text": "x"})
    outcome = await run(job)
    assert isinstance(outcome, Failure)
    assert (outcome.error_class, outcome.cause, outcome.open_operation) == (
        ErrorClass.TRANSIENT,
        Cause.NETWORK,
        False,
    )
    assert job.sent == []


async def test_what_the_door_refuses_is_told_as_it_is(standin: Standin) -> None:
    def refuse(method: str, path: str) -> None:
        raise Refused("The address is not allowed.")

    outcome = await run(standin.job(http=WatchedHttp(refuse)))
    assert outcome == Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, "The address is not allowed.")


async def test_a_wrong_address_is_named(standin: Standin) -> None:
    outcome = await run(NotedJob(connection(standin.base), {"text": "x"}))
    assert isinstance(outcome, Failure)
    assert outcome.error_class is ErrorClass.PERMANENT
    assert len(standin.seen()["runs"]) == 0


@pytest.mark.parametrize(
    ("fault", "schema", "ask"),
    [
        ("text", LABELLED, None),
        ("fenced", LABELLED, None),
        ("fenced_no_label", LABELLED, None),
        ("think", LABELLED, None),
        ("lone_think", LABELLED, None),
        ("citation", LABELLED, None),
        ("invalid_json", LABELLED, "invalid_output"),
        ("refusal", LABELLED, "invalid_output"),
        ("missing_field", LABELLED, "invalid_output"),
        ("refusal", None, None),
        ("empty", None, "empty_output"),
        ("nul", LABELLED, None),
        ("surrogate", LABELLED, None),
    ],
)
async def test_the_ways_in_which_a_model_answers(
    standin: Standin, fault: str, schema: dict[str, Any] | None, ask: str | None
) -> None:
    """B019, B095"""
    standin.faults(fault)
    outcome = await run(standin.job(output_schema=schema))
    assert isinstance(outcome, Success)
    assert outcome.ask == ask
    if ask is None and schema is not None:
        assert outcome.result["label"].strip("\ufffd") in ("hot", "warm", "cold", "spam")
    if ask == "invalid_output":
        assert outcome.raw_text
        assert "label" not in outcome.result
    text = json.dumps([outcome.result, outcome.raw_text], ensure_ascii=False)
    assert "\\u0000" not in text
    text.encode("utf-8")


async def test_numbers_that_json_does_not_know_are_an_invalid_output(standin: Standin) -> None:
    outputs = {"label": "hot", "score": float("nan"), "id": 653247040368672768}
    finished = {"event": "workflow_finished", "data": {"id": RUN_ID, "status": "succeeded", "outputs": outputs}}
    frame = f"data: {json.dumps(finished)}\n\n".encode()
    standin.faults({"fault": "raw", "raw": base64.b64encode(frame).decode()})
    outcome = await run(standin.job(output_schema=LABELLED))
    assert isinstance(outcome, Success)
    assert outcome.ask == "invalid_output"
    assert outcome.result == {"label": "hot", "score": None, "id": 653247040368672768}
    assert "NaN" in (outcome.raw_text or "")
    finished["data"]["outputs"] = {"score": float("inf")}  # type: ignore[index]
    standin.faults({"fault": "raw", "raw": base64.b64encode(f"data: {json.dumps(finished)}\n\n".encode()).decode()})
    without_schema = await run(standin.job())
    assert isinstance(without_schema, Success)
    assert without_schema.ask == "invalid_output"


async def test_an_output_schema_that_cannot_be_used_is_named(standin: Standin) -> None:
    outcome = await run(standin.job(output_schema={"type": "nonsense"}))
    assert isinstance(outcome, Failure)
    assert outcome.error_class is ErrorClass.PERMANENT
    assert "output_schema" in outcome.message


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


@pytest.mark.parametrize("key", ["", "Bearer ", "app-schlüssel", "app 1"])
async def test_an_unusable_key_is_told_and_nothing_is_sent(standin: Standin, key: str) -> None:
    outcome = await run(standin.job(key=key))
    assert isinstance(outcome, Failure)
    assert outcome.error_class is ErrorClass.PERMANENT
    assert "leads" in outcome.message
    assert standin.seen()["requests"] == []


async def test_a_key_pasted_with_its_scheme_works(standin: Standin) -> None:
    assert isinstance(await run(standin.job(key=" Bearer app-demo-leads ")), Success)


async def test_a_refused_key_points_at_the_settings_and_is_never_shown(
    standin: Standin, caplog: pytest.LogCaptureFixture
) -> None:
    """B021"""
    caplog.set_level(logging.DEBUG)
    key = "app-0123456789secret"
    outcome = await run(standin.job(key=key))
    assert isinstance(outcome, Failure)
    assert (outcome.cause, outcome.code, outcome.http_status) == (Cause.AUTH, "unauthorized", 401)
    assert "settings of the connection “leads”" in outcome.message
    echo = standin.job(key="app-demo-articles")
    standin.faults({"fault": "invalid_param", "message": f"key app-demo-articles is odd, {key} too"})
    echoed = await run(echo)
    own = [record for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    shown = repr([outcome, echoed, echo, echo.sent, echo.steps, [record.getMessage() for record in own]])
    assert "is odd" in shown
    assert key not in shown
    assert "app-demo-articles" not in shown


def test_registration_and_check() -> None:
    [handler] = handlers()
    assert (handler.name, handler.connection_kind, handler.side_effects) == ("dify.workflow", "dify", False)
    assert handler.check({"use": "dify.workflow", "connection": "leads", "inputs": {"a": "{{ x }}"}}) == []
    assert handler.check({"use": "dify.workflow", "connection": "leads", "inputs": None}) == []
    assert [path for path, _ in handler.check({"inputs": ["a"], "workflow_id": 5})] == ["inputs", "workflow_id"]
