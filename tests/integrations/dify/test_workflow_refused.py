"""What is refused: HTTP errors, addresses that lead nowhere, keys that do not fit; against the stand-in."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from board.ports import (
    Cause,
    ErrorClass,
    Failure,
    Refused,
    Success,
)
from tests.integrations.dify import cases
from tests.integrations.dify.attempt import free_port, run
from tests.integrations.dify.conftest import Standin
from tests.integrations.dify.doubles import NotedJob, WatchedHttp, connection


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
