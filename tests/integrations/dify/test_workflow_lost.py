"""An answer that is lost: what became of the run is found out, or left open; against the stand-in."""

from __future__ import annotations

import pytest

from board.ports import (
    Cause,
    ErrorClass,
    Failure,
    Lost,
    Success,
    UnknownOutcome,
)
from tests.integrations.dify.attempt import run
from tests.integrations.dify.conftest import Standin
from tests.integrations.dify.doubles import WatchedHttp


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
