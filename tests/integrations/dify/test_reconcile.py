"""What an earlier attempt left sent is found out before anything is started again."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from board.ports import Cause, ErrorClass, Failure, Lost, NotStarted, SentOperation, Success, UnknownOutcome
from integrations.dify.follow import Pace
from integrations.dify.workflow import Workflow
from tests.integrations.dify.conftest import Standin
from tests.integrations.dify.doubles import NotedJob, WatchedHttp

FIRST = "board:1:1"


def operation(reference: str | None = None, *, seconds_ago: float = 0.0, user: str = FIRST) -> SentOperation:
    sent_at = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    return SentOperation("key", "dify.run", "Dify app “leads”", user, reference, sent_at)


async def reconcile(job: NotedJob, sent: SentOperation) -> Any:
    return await Workflow(Pace(first=0.05, cap=0.2)).reconcile(job, sent)


async def start_and_die(standin: Standin, fault: dict[str, Any]) -> str:
    """A first attempt that is cancelled once its run has begun; the run's id."""
    standin.faults(fault)
    job = standin.job(user=FIRST)
    task = asyncio.create_task(Workflow().run(job))
    async with asyncio.timeout(5):
        await job.started.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return job.references[0]


@pytest.mark.parametrize("known", [True, False], ids=["by its id", "by its user"])
async def test_the_run_lives_on_and_its_result_is_taken(standin: Standin, known: bool) -> None:
    run_id = await start_and_die(standin, {"fault": "slow", "seconds": 0.5})
    job = standin.job(user="board:1:2", output_schema={"required": ["label"]})
    outcome = await reconcile(job, operation(run_id if known else None))
    assert isinstance(outcome, Success)
    assert outcome.result["label"]
    assert outcome.reference == run_id
    assert job.references == ([] if known else [run_id])
    assert job.sent == []
    assert len(standin.runs_asked_for()) == 1


async def test_still_running_stays_open(standin: Standin) -> None:
    run_id = await start_and_die(standin, {"fault": "slow", "seconds": 60})
    for reference in (run_id, None):
        outcome = await reconcile(standin.job(user="board:1:2", timeout=0.8), operation(reference))
        assert isinstance(outcome, Failure)
        assert (outcome.cause, outcome.open_operation) == (Cause.TIMEOUT, True)


async def test_a_failed_run_is_closed_as_failed(standin: Standin) -> None:
    run_id = await start_and_die(standin, {"fault": "failed", "seconds": 0.3})
    outcome = await reconcile(standin.job(), operation(run_id))
    assert isinstance(outcome, Failure)
    assert (outcome.error_class, outcome.open_operation) == (ErrorClass.UNKNOWN, False)


@pytest.mark.parametrize("reference", [None, "5f9f1f9e-0000-4000-8000-000000000000"])
async def test_nothing_to_be_found_after_the_grace_time_is_proof(standin: Standin, reference: str | None) -> None:
    outcome = await reconcile(standin.job(grace=60), operation(reference, seconds_ago=61))
    assert isinstance(outcome, NotStarted)


@pytest.mark.parametrize("reference", [None, "5f9f1f9e-0000-4000-8000-000000000000"])
async def test_nothing_to_be_found_within_the_grace_time_is_not(standin: Standin, reference: str | None) -> None:
    outcome = await reconcile(standin.job(grace=60, timeout=0.8), operation(reference, seconds_ago=5))
    assert isinstance(outcome, Failure)
    assert outcome.open_operation


async def test_the_grace_time_counts_from_the_sending(standin: Standin) -> None:
    """A run that waits long for one of Dify's workers is found as soon as it begins."""
    standin.faults({"fault": "drop_before_id", "queue_seconds": 3.0})
    first = standin.job(user=FIRST, timeout=2, grace=10)
    assert isinstance(await Workflow().run(first), Failure)
    outcome = await reconcile(standin.job(user="board:1:2", grace=10), operation())
    assert isinstance(outcome, Success)


async def test_runs_of_other_attempts_are_not_taken(standin: Standin) -> None:
    await start_and_die(standin, {"fault": "slow", "seconds": 0.2})
    outcome = await reconcile(standin.job(), operation(seconds_ago=61, user="board:1:9"))
    assert isinstance(outcome, NotStarted)


@pytest.mark.parametrize("known", [True, False])
async def test_lost_questions_never_turn_a_living_run_into_a_second_one(standin: Standin, known: bool) -> None:
    run_id = await start_and_die(standin, {"fault": "slow", "seconds": 60})

    def broken(method: str, path: str) -> None:
        raise Lost("the connection broke")

    job = standin.job(timeout=0.8, http=WatchedHttp(broken))
    outcome = await reconcile(job, operation(run_id if known else None, seconds_ago=100))
    assert isinstance(outcome, Failure)
    assert (outcome.cause, outcome.open_operation) == (Cause.NETWORK, True)
    assert "the connection broke" in outcome.message


async def test_errors_of_the_server_while_asking_keep_it_open(standin: Standin) -> None:
    run_id = await start_and_die(standin, {"fault": "slow", "seconds": 60, "detail": "error"})
    outcome = await reconcile(standin.job(timeout=0.8), operation(run_id, seconds_ago=100))
    assert isinstance(outcome, Failure)
    assert outcome.open_operation


async def test_a_log_that_ignores_the_filter_proves_nothing(standin: Standin) -> None:
    """An old Dify would list everybody's runs."""
    await start_and_die(standin, {"fault": "slow", "seconds": 0.2})

    class Unfiltered(WatchedHttp):
        async def request(self, method: str, url: str, **more: Any) -> Any:
            return await super().request(method, url.replace("created_by_end_user_session_id", "unknown"), **more)

    job = standin.job(http=Unfiltered())
    outcome = await reconcile(job, operation(seconds_ago=100, user="board:1:9"))
    assert isinstance(outcome, UnknownOutcome)


async def test_a_refused_key_leaves_it_open(standin: Standin) -> None:
    run_id = await start_and_die(standin, {"fault": "slow", "seconds": 0.2})
    for key in ("app-revoked-0123456789", ""):
        outcome = await reconcile(standin.job(key=key), operation(run_id))
        assert isinstance(outcome, Failure)
        assert (outcome.error_class, outcome.open_operation) == (ErrorClass.PERMANENT, True)
