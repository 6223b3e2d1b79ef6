"""The whole way, on both databases: a task comes in over HTTP, a worker asks the stand-in, the task is settled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from board.app import build_app
from board.rooms import open_board
from board.settings import Settings
from integrations.dify.chat import Chat
from integrations.dify.follow import Pace
from integrations.dify.workflow import Workflow
from tests.integrations.dify.conftest import Standin, serving

KEY = "a-key-for-this-test-only-0123456789"


@pytest.fixture
async def board(database_url: str, tmp_path: Path, standin: Standin) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a board that serves and works, with one type `lead` and the stand-in as its Dify."""
    settings = Settings(database_url=database_url, data_dir=tmp_path, bootstrap_api_key=KEY)
    known = [Workflow(Pace(0.05, 0.2)), Chat(Pace(0.05, 0.2))]
    board = open_board(settings, handlers=lambda: {it.name: it for it in known})
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


async def reviewed(board: httpx.AsyncClient, task: dict[str, Any]) -> dict[str, Any]:
    answer = await board.get(f"/reviews/{task['review']['id']}")
    assert answer.status_code == 200, answer.text
    review: dict[str, Any] = answer.json()
    return review


async def test_a_run_that_asks_a_person_goes_on_with_the_answer(board: httpx.AsyncClient, standin: Standin) -> None:
    standin.faults("paused")
    task = await settle(board)
    assert (task["status"], task["review"]["reason"]) == ("needs_review", "input_needed")
    review = await reviewed(board, task)
    assert review["verdicts"] == ["answer", "reject"]
    assert [it["id"] for it in review["form"]["actions"]] == ["approve", "reject"]
    decision = {name: review[name] for name in ("version", "content_hash")} | {"verdict": "answer"}
    wrong = await board.post(f"/reviews/{review['id']}/decision", json=decision | {"action": "approve", "inputs": {}})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "answer_does_not_fit")
    given = decision | {"action": "approve", "inputs": {"remark": "Go ahead."}}
    answer = await board.post(f"/reviews/{review['id']}/decision", json=given)
    assert answer.status_code == 200, answer.text
    done = (await board.get(f"/tasks/{task['task_id']}?wait=30")).json()
    assert (done["status"], done["round"]) == ("done", 1)
    assert done["result"]["label"]
    assert len(standin.runs_asked_for()) == 1
    [operation] = await operations(board, done)
    assert operation["status"] == "confirmed"
    shown = str(review) + str(done) + (await board.get(f"/tasks/{task['task_id']}/events")).text
    assert "token" not in shown.replace("lease_token", "").replace("tokens", "")


async def test_a_file_of_the_board_goes_with_its_run(board: httpx.AsyncClient, standin: Standin) -> None:
    """B023"""
    types = catalogue(standin)
    types["types"][0]["handler"]["inputs"]["attachment"] = "{{ payload.photo }}"
    assert (await board.post("/types", json=types)).status_code == 200
    kept = await board.post("/files", files={"file": ("photo.png", b"\x89PNG\r\n\x1a\n", "image/png")})
    assert kept.status_code == 201, kept.text
    payload = {"text": "200 seats", "photo": {"file": kept.json()["file_id"]}}
    task = (await board.post("/tasks?wait=30", json={"type": "lead", "payload": payload})).json()
    assert (task["status"], task["last_error"]) == ("done", None)
    [started] = standin.seen()["runs"]
    assert started["files"][0]["transfer_method"] == "local_file"
    [upload] = [entry for entry in standin.seen()["requests"] if entry["path"].endswith("/files/upload")]
    assert upload["at"] < started["created_at"] + 1


async def test_a_chat_streams_to_whoever_follows_its_task(board: httpx.AsyncClient, standin: Standin) -> None:
    connection = {"name": "talk", "kind": "dify", "url": standin.url, "key": "app-demo-chatflow"}
    handler = {"use": "dify.chat", "connection": "talk", "inputs": {"query": "{{ payload.text }}"}}
    made = await board.post(
        "/types", json={"connections": [connection], "types": [{"name": "chat", "handler": handler}]}
    )
    assert made.status_code == 200, made.text
    body = {"type": "chat", "payload": {"text": "We need 200 seats."}}
    answer = await board.post("/tasks", json=body, headers={"Accept": "text/event-stream"})
    said = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    text = "".join(it["text"] for it in said if "text" in it and "task_id" not in it)
    [task] = (await board.get("/tasks?type=chat")).json()["data"]
    assert task["status"] == "done"
    assert text == task["result"]["answer"] != ""
    [attempt] = (await board.get(f"/tasks/{task['task_id']}/attempts")).json()["data"]
    assert attempt["tokens"] > 0
    assert attempt["cost"].endswith("USD")
