"""`wait: callback` and `wait: blocking`: a run that is started and calls back, on a board that serves and works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from board.app import build_app
from board.rooms import Board, open_board
from board.settings import Settings
from integrations.dify.follow import Pace
from integrations.dify.workflow import Workflow
from tests.integrations.dify.conftest import Standin, serving
from tests.integrations.dify.test_on_the_board import operations
from tests.rig.calling import URL

KEY = "a-key-for-this-test-only-0123456789"
SLOW = {"fault": "slow", "seconds": 600.0}


@dataclass
class At:
    """A board. `client`: with a key; `anybody`: without one, as Dify's HTTP Request node is."""

    board: Board
    client: httpx.AsyncClient
    anybody: httpx.AsyncClient
    pace: Pace
    opened: AsyncExitStack

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """A worker, for as long as this lasts."""
        other = open_board(self.board.settings, handlers=lambda: {Workflow.name: Workflow(self.pace)})
        consumer = other.make_consumer()
        consumer.start()
        try:
            yield
        finally:
            await asyncio.to_thread(consumer.stop)
            other.close()

    async def settled(self, task_id: str) -> dict[str, Any]:
        task: dict[str, Any] = (await self.client.get(f"/tasks/{task_id}?wait=30")).json()
        return task

    async def call(self, url: str, **body: Any) -> httpx.Response:
        return await self.anybody.post(url.removeprefix(URL), json=body)


@pytest.fixture
async def at(database_url: str, tmp_path: Path) -> AsyncIterator[At]:
    settings = Settings(database_url=database_url, data_dir=tmp_path, bootstrap_api_key=KEY)
    board = open_board(settings, handlers=lambda: {Workflow.name: Workflow()})
    async with AsyncExitStack() as opened:
        base = f"{opened.enter_context(serving(build_app(board)))}/api/v1"
        headers = {"Authorization": f"Bearer {KEY}"}
        client = await opened.enter_async_context(httpx.AsyncClient(base_url=base, headers=headers, timeout=60))
        anybody = await opened.enter_async_context(httpx.AsyncClient(base_url=f"{base}/callbacks/", timeout=60))
        yield At(board, client, anybody, Pace(0.05, 0.2, look=60.0), opened)
    board.close()


async def submit(at: At, standin: Standin, **handler: Any) -> str:
    block = {
        "use": "dify.workflow",
        "connection": "leads",
        "inputs": {"text": "{{ payload.text }}", "former": "{{ callback.url }}"},
        "timeout": "1h",
        "wait": "callback",
    }
    made = await at.client.post(
        "/types",
        json={
            "connections": [
                {"name": "leads", "kind": "dify", "url": standin.url, "key": "app-demo-leads", "grace": "1s"}
            ],
            "types": [
                {"name": "lead", "handler": block | handler, "retry": {"base": "50ms", "cap": "100ms", "max": 20}}
            ],
        },
    )
    assert made.status_code == 200, made.text
    answer = await at.client.post("/tasks", json={"type": "lead", "payload": {"text": "We need 200 seats by May."}})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["task_id"])


async def started(at: At, standin: Standin, task_id: str, number: int = 1) -> tuple[str, str]:
    """The run's id, once the board has stored it, and the address that the run was given."""

    async def stored() -> str:
        while True:
            found = (await at.client.get(f"/tasks/{task_id}/operations")).json()["data"]
            if found and found[0]["external_reference"]:
                return str(found[0]["external_reference"])
            await asyncio.sleep(0.02)

    run_id = await asyncio.wait_for(stored(), 20)
    runs = standin.seen()["runs"]
    assert len(runs) == number
    return run_id, runs[-1]["inputs"]["former"]


async def taken_again(at: At, task_id: str) -> None:
    while True:
        if (await at.client.get(f"/tasks/{task_id}")).json()["status"] == "running":
            return
        await asyncio.sleep(0.02)


async def test_a_run_calls_back(at: At, standin: Standin) -> None:
    """The result comes long before anybody looks at the run, which goes on."""
    standin.faults(SLOW)
    async with at.working():
        task_id = await submit(at, standin)
        run_id, url = await started(at, standin, task_id)
        answer = await at.call(url, status="succeeded", result={"label": "hot"}, judgement={"confidence": 0.9})
        assert answer.status_code == 200
        task = await at.settled(task_id)
    assert (task["status"], task["result"], task["judgement"]["confidence"]) == ("done", {"label": "hot"}, 0.9)
    [operation] = await operations(at.client, task)
    assert (operation["status"], operation["external_reference"]) == ("confirmed", run_id)


async def test_a_run_that_ends_without_a_callback_is_seen_by_its_detail(at: At, standin: Standin) -> None:
    at.pace = Pace(0.05, 0.2, look=0.1)
    async with at.working():
        task_id = await submit(at, standin)
        task = await at.settled(task_id)
    assert task["status"] == "done"
    assert task["result"]["label"]
    assert len(standin.runs_asked_for()) == 1


async def test_a_run_that_fails_without_a_callback_is_seen_too(at: At, standin: Standin) -> None:
    at.pace = Pace(0.05, 0.2, look=0.1)
    standin.faults("failed")
    async with at.working():
        task_id = await submit(at, standin)
        task = await at.settled(task_id)
    assert task["status"] == "done", "the second run succeeded"
    assert task["retry_count"] == 1
    assert len(standin.runs_asked_for()) == 2


async def test_a_start_whose_answer_is_cut_may_call_back(at: At, standin: Standin) -> None:
    """B013: the run is found by its user, and its callback does not wait for its end."""
    standin.faults({"fault": "drop_before_id", "seconds": 600.0})
    async with at.working():
        task_id = await submit(at, standin)
        _, url = await started(at, standin, task_id)
        assert (await at.call(url, status="succeeded", result={"label": "hot"})).status_code == 200
        task = await at.settled(task_id)
    assert (task["status"], task["result"]) == ("done", {"label": "hot"})
    assert len(standin.runs_asked_for()) == 1


async def test_when_the_time_is_over_the_run_is_asked_for(at: At, standin: Standin) -> None:
    """Nothing is started again; the attempt after the last one that waited sees how it ended."""
    standin.faults({"fault": "slow", "seconds": 2.5})
    async with at.working():
        task_id = await submit(at, standin, timeout="1s")
        task = await at.settled(task_id)
        attempts = (await at.client.get(f"/tasks/{task_id}/attempts")).json()["data"]
    assert task["status"] == "done"
    assert task["result"]["label"]
    assert attempts[0]["outcome"] == "open"
    assert len(standin.runs_asked_for()) == 1


async def test_a_callback_that_comes_while_no_worker_is_there(at: At, standin: Standin) -> None:
    """B013, B033: one paid run, and its result is not lost."""
    standin.faults(SLOW)
    async with at.working():
        task_id = await submit(at, standin)
        _, url = await started(at, standin, task_id)
    assert (await at.call(url, status="succeeded", result={"label": "kept"})).status_code == 200
    async with at.working():
        task = await at.settled(task_id)
    assert (task["status"], task["result"]) == ("done", {"label": "kept"})
    assert len(standin.runs_asked_for()) == 1


async def test_the_next_worker_waits_for_the_same_run(at: At, standin: Standin) -> None:
    standin.faults(SLOW)
    async with at.working():
        task_id = await submit(at, standin)
        _, url = await started(at, standin, task_id)
    async with at.working():
        await asyncio.wait_for(taken_again(at, task_id), 20)
        answer = await at.call(url, status="failed", message="No such company.", **{"class": "permanent"})
        assert answer.status_code == 200
        task = await at.settled(task_id)
    assert (task["status"], task["last_error"]) == ("failed", "No such company.")
    assert len(standin.runs_asked_for()) == 1


async def test_a_cancelled_task_waits_no_more(at: At, standin: Standin) -> None:
    """B025."""
    standin.faults(SLOW)
    async with at.working():
        task_id = await submit(at, standin)
        _, url = await started(at, standin, task_id)
        await at.client.post(f"/tasks/{task_id}/cancel", json={})
        assert (await at.settled(task_id))["status"] == "cancelled"
    late = await at.call(url, status="succeeded", result={"label": "late"})
    assert (late.status_code, late.json()["code"]) == (409, "callback_late")
    assert (await at.settled(task_id))["result"] is None


async def test_one_answer_is_waited_for_where_the_type_says_so(at: At, standin: Standin) -> None:
    async with at.working():
        task_id = await submit(at, standin, wait="blocking", inputs={"text": "{{ payload.text }}"})
        task = await at.settled(task_id)
    assert task["status"] == "done"
    assert task["result"]["label"]
    [asked] = standin.runs_asked_for()
    assert asked["body"]["response_mode"] == "blocking"


async def test_a_waited_answer_that_is_cut_is_found_in_the_run_log(at: At, standin: Standin) -> None:
    """B013: a gateway cuts the line with a page, and the run goes on."""
    standin.faults("html_504")
    async with at.working():
        task_id = await submit(at, standin, wait="blocking", inputs={"text": "{{ payload.text }}"})
        task = await at.settled(task_id)
    assert task["status"] == "done"
    assert "html" not in str(task["result"])
    assert len(standin.runs_asked_for()) == 1


async def test_the_address_belongs_to_a_wait_for_a_callback(at: At, standin: Standin) -> None:
    with pytest.raises(AssertionError, match="only with `wait: callback`"):
        await submit(at, standin, wait="stream")
