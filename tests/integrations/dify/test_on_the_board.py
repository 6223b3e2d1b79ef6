"""The whole way, on both databases: a task comes in over HTTP, a worker asks the stand-in, the task is settled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from board.app import build_app
from board.rooms import open_board
from board.settings import Settings
from integrations.dify.follow import Pace
from integrations.dify.workflow import Workflow
from tests.integrations.dify.conftest import Standin, serving

KEY = "a-key-for-this-test-only-0123456789"


@pytest.fixture
async def board(database_url: str, tmp_path: Path, standin: Standin) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a board that serves and works, with one type `lead` and the stand-in as its Dify."""
    settings = Settings(database_url=database_url, data_dir=tmp_path, bootstrap_api_key=KEY)
    board = open_board(settings, handlers=lambda: {Workflow.name: Workflow(Pace(0.05, 0.2))})
    consumer = board.make_consumer()
    headers = {"Authorization": f"Bearer {KEY}"}
    with serving(build_app(board)) as base:
        consumer.start()
        try:
            async with httpx.AsyncClient(base_url=f"{base}/api/v1", headers=headers, timeout=60) as client:
                made = await client.post("/types", json=catalogue(standin))
                assert made.status_code == 200, made.text
                yield client
        finally:
            await asyncio.to_thread(consumer.stop)


def catalogue(standin: Standin, key: str = "app-demo-leads") -> dict[str, Any]:
    handler = {
        "use": "dify.workflow",
        "connection": "leads",
        "inputs": {"text": "{{ payload.text }}", "instruction": "{{ review.instruction or '' }}"},
        "output_schema": {"type": "object", "required": ["label"]},
        "judgement": {"confidence": "confidence", "summary": "summary"},
        "timeout": "2s",
    }
    return {
        "connections": [{"name": "leads", "kind": "dify", "url": standin.url, "key": key, "grace": "1s"}],
        "types": [{"name": "lead", "handler": handler, "retry": {"base": "50ms", "cap": "100ms"}}],
    }


async def settle(client: httpx.AsyncClient, text: str = "We need 200 seats by May.") -> dict[str, Any]:
    answer = await client.post("/tasks?wait=30", json={"type": "lead", "payload": {"text": text}})
    assert answer.status_code == 201, answer.text
    task: dict[str, Any] = answer.json()
    return task


async def operations(client: httpx.AsyncClient, task: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await client.get(f"/tasks/{task['task_id']}/operations")
    assert answer.status_code == 200, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


async def test_a_task_is_judged(board: httpx.AsyncClient, standin: Standin) -> None:
    task = await settle(board)
    assert (task["status"], task["last_error"]) == ("done", None)
    assert task["result"]["label"]
    assert task["judgement"]["confidence"] == task["result"]["confidence"]
    [operation] = await operations(board, task)
    [started] = standin.seen()["runs"]
    assert (operation["status"], operation["external_reference"]) == ("confirmed", started["id"])


async def test_a_run_longer_than_the_attempt_is_taken_up_by_the_next_one(
    board: httpx.AsyncClient, standin: Standin
) -> None:
    standin.faults({"fault": "slow", "seconds": 3})
    task = await settle(board)
    assert (task["status"], task["retry_count"]) == ("done", 0)
    assert task["result"]["label"]
    assert len(standin.runs_asked_for()) == 1


@pytest.mark.parametrize("fault", ["html_504", "drop_before_id", "no_terminal"])
async def test_a_lost_answer_costs_no_second_run(board: httpx.AsyncClient, standin: Standin, fault: str) -> None:
    """B013"""
    standin.faults(fault)
    task = await settle(board)
    assert (task["status"], task["retry_count"]) == ("done", 0)
    assert len(standin.runs_asked_for()) == 1


async def test_rate_limits_are_retried_and_a_refusal_fails_at_once(board: httpx.AsyncClient, standin: Standin) -> None:
    """B021"""
    standin.faults("provider_rate_limit", "too_many_requests", "none", "invalid_param")
    retried, refused = await settle(board), await settle(board, "Another one.")
    assert (retried["status"], retried["retry_count"]) == ("done", 2)
    assert (refused["status"], refused["error_class"], refused["retry_count"]) == ("failed", "permanent", 0)
    assert "invalid_param" in refused["last_error"]


async def test_a_wrong_key_fails_at_once_and_is_not_shown(board: httpx.AsyncClient, standin: Standin) -> None:
    await board.post("/types", json=catalogue(standin, key="app-wrong-key-0123456789"))
    task = await settle(board)
    assert (task["status"], task["error_cause"]) == ("failed", "auth")
    assert "settings of the connection “leads”" in task["last_error"]
    assert "0123456789" not in str(task)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("partial", "partial_result"), ("empty", "empty_output"), ("refusal", "invalid_output"), ("fenced", None)],
)
async def test_doubtful_answers_ask_a_person(
    board: httpx.AsyncClient, standin: Standin, fault: str, reason: str | None
) -> None:
    """B017, B019"""
    standin.faults(fault)
    task = await settle(board)
    assert (task["status"], (task["review"] or {}).get("reason")) == ("needs_review" if reason else "done", reason)


async def test_a_persons_instruction_reaches_the_next_run(board: httpx.AsyncClient, standin: Standin) -> None:
    standin.faults("partial")
    task = await settle(board)
    answer = await board.post(f"/tasks/{task['task_id']}/revise", json={"instruction": "Say cold."})
    assert answer.status_code == 200, answer.text
    task = (await board.get(f"/tasks/{task['task_id']}?wait=30")).json()
    assert (task["status"], task["round"], task["result"]["label"]) == ("done", 2, "cold")
    assert [entry["body"]["inputs"].get("instruction") for entry in standin.runs_asked_for()] == ["", "Say cold."]


async def test_put_back_to_start_anew_is_judged_anew(board: httpx.AsyncClient, standin: Standin) -> None:
    made = catalogue(standin)
    made["types"][0]["review"] = {"when": "always", "grace": "0s"}
    assert (await board.post("/types", json=made)).status_code == 200
    task = await settle(board)
    assert task["status"] == "needs_review"
    assert (await board.post(f"/tasks/{task['task_id']}/reject", json={"reason": "Ask again."})).status_code == 200
    assert (await board.post(f"/tasks/{task['task_id']}/requeue", json={"from": "work"})).status_code == 200
    again = (await board.get(f"/tasks/{task['task_id']}?wait=30")).json()
    assert again["status"] == "needs_review"
    first, second = standin.seen()["runs"]
    [operation] = await operations(board, task)
    assert (operation["status"], operation["external_reference"], operation["tries"]) == ("confirmed", second["id"], 2)
    assert first["id"] != second["id"]
