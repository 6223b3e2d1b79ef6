"""Faults of the run itself: error events, ends, answers and files, as dify_app's docstring says."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.integrations.demo.conftest import Client, last, names

pytestmark = pytest.mark.asyncio(loop_scope="module")  # the server lives in that loop


# Events that report trouble


async def test_error_event(dify: Client) -> None:
    """The error comes under HTTP 200, and the server then only pings until its idle limit."""
    answer = await dify.start("error_event")
    assert answer.status_code == 200
    body, _, after = answer.text.partition('"event": "error"')
    assert '"event": "text_chunk"' in body
    assert '"status": 429' in after
    assert '"code": "rate_limit_error"' in after
    assert after.count("event: ping\n\n") >= 3
    assert dify.run.status == "failed"


async def test_error_event_blocking(dify: Client) -> None:
    answer = await dify.start("error_event", "blocking")
    assert (answer.status_code, answer.json()["code"]) == (429, "rate_limit_error")


async def test_error_event_no_code(dify: Client) -> None:
    events = await dify.streamed("error_event_no_code")
    assert events == [{"event": "error", "message": "text is required in input form", "status": 500}]
    assert dify.memory.book.started == 0


async def test_synthetic_failed(dify: Client) -> None:
    events = await dify.streamed("synthetic_failed")
    assert names(events) == ["workflow_started", "workflow_finished"]
    assert (last(events)["status"], last(events)["error"]) == ("failed", "text is required in input form")
    assert (await dify.http.get(f"/v1/workflows/run/{last(events)['id']}")).status_code == 404
    assert await dify.log() == []


# Ends of a run


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        ("partial", "partial-succeeded", None),
        ("failed", "failed", "[demo] The model did not answer."),
        ("stopped", "stopped", "Stopped by user."),
        ("empty", "succeeded", None),
    ],
)
async def test_ends(dify: Client, fault: str, status: str, error: str | None) -> None:
    events = await dify.streamed(fault)
    assert (last(events)["status"], last(events)["error"]) == (status, error)
    blocking = await dify.start(fault, "blocking")
    assert blocking.status_code == 200
    assert blocking.json()["data"]["status"] == status
    assert (await dify.detail(last(events)["id"]))["status"] == status
    assert bool(last(events)["outputs"].get("label")) is (fault == "partial")


async def test_partial_names_the_nodes_error(dify: Client) -> None:
    events = await dify.streamed("partial")
    failed = [event["data"] for event in events if event["data"].get("status") == "exception"]
    assert [node["error"] for node in failed] == ["tool timed out"]
    assert last(events)["exceptions_count"] == 1


async def test_empty(dify: Client) -> None:
    assert last(await dify.streamed("empty"))["outputs"] == {"text": ""}


async def test_slow(dify: Client) -> None:
    started = asyncio.get_running_loop().time()
    assert last(await dify.streamed("slow seconds=0.4"))["status"] == "succeeded"
    assert asyncio.get_running_loop().time() - started >= 0.4


async def test_ignore_stop(dify: Client) -> None:
    """B025: the stop call says success, and the run finishes as if nothing had been said."""
    await dify.until_open("ignore_stop seconds=0.4", stop_at="workflow_started")
    answer = await dify.http.post(f"/v1/workflows/tasks/{dify.run.task_id}/stop", json={"user": "u"})
    assert answer.json() == {"result": "success"}
    await dify.run.settled()
    assert (await dify.detail(dify.run.id))["status"] == "succeeded"


async def test_paused_answered_and_resumed(dify: Client) -> None:
    events = await dify.streamed("paused")
    assert names(events)[-2:] == ["human_input_required", "workflow_paused"]
    assert (await dify.detail(dify.run.id))["status"] == "paused"
    token = events[-2]["data"]["form_token"]
    form = (await dify.http.get(f"/v1/form/human_input/{token}")).json()
    answer = {"inputs": {"remark": "go"}, "action": form["user_actions"][0]["id"], "user": "a person"}
    path = f"/v1/form/human_input/{token}"
    assert (await dify.http.post(path, json=answer | {"inputs": {}})).json()["code"] == "invalid_form_data"
    assert (await dify.http.post(path, json=answer | {"action": "x"})).json()["code"] == "invalid_form_data"
    assert (await dify.http.post(path, json=answer)).json() == {}
    assert (await dify.http.post(path, json=answer)).status_code == 412
    await dify.run.settled()
    assert (await dify.detail(dify.run.id))["status"] == "succeeded"
    assert "human_input_form_filled" in [event["event"] for event in dify.run.events]


async def test_paused_blocking(dify: Client) -> None:
    data = (await dify.start("paused", "blocking")).json()["data"]
    assert (data["status"], data["paused_nodes"]) == ("paused", ["person"])
    assert data["reasons"][0]["TYPE"] == "human_input_required"


async def test_stop_while_paused(dify: Client) -> None:
    await dify.streamed("paused")
    await dify.http.post(f"/v1/workflows/tasks/{dify.run.task_id}/stop", json={"user": "u"})
    assert (await dify.detail(dify.run.id))["status"] == "stopped"


# Answers that are not what was asked for


@pytest.mark.parametrize(
    ("fault", "part"),
    [
        ("text", '{"label": "hot"'),
        ("fenced", "```json\n{"),
        ("fenced_no_label", "```\n{"),
        ("think", "<think>"),
        ("lone_think", "</think>"),
        ("citation", "Source: [1]"),
        ("invalid_json", ", oops"),
        ("refusal", "I can't help"),
    ],
)
async def test_answers_as_text(dify: Client, fault: str, part: str) -> None:
    outputs = last(await dify.streamed(fault))["outputs"]
    assert outputs.keys() == {"text"}
    assert part in outputs["text"]
    assert ('"confidence"' in outputs["text"]) is (fault != "refusal")
    assert outputs["text"].count("<think>") == (fault == "think")


async def test_missing_field(dify: Client) -> None:
    assert "label" not in last(await dify.streamed("missing_field"))["outputs"]
    outputs = last(await dify.streamed("missing_field drop_field=confidence"))["outputs"]
    assert "label" in outputs
    assert "confidence" not in outputs


@pytest.mark.parametrize(("fault", "character"), [("nul", "\0"), ("surrogate", "\ud800")])
async def test_characters_that_no_store_takes(dify: Client, fault: str, character: str) -> None:
    events = await dify.streamed(fault)
    assert last(events)["outputs"]["summary"].startswith(character)
    assert (await dify.detail(last(events)["id"]))["outputs"]["summary"].startswith(character)


# Files


async def _with_file(dify: Client, fault: str) -> httpx.Response:
    sent = await dify.http.post("/v1/files/upload", files={"file": ("a.txt", b"x", "text/plain")}, data={"user": "u"})
    file = {"type": "document", "transfer_method": "local_file", "upload_file_id": sent.json()["id"]}
    return await dify.start(fault, "blocking", user="u", files=[file])


async def test_forget_files(dify: Client) -> None:
    """B023: an upload that is gone is refused; a new one works."""
    answer = await _with_file(dify, "forget_files")
    assert (answer.status_code, answer.json()["message"]) == (400, "Invalid upload file")
    assert (await _with_file(dify, "none")).status_code == 200


async def test_hide_files(dify: Client) -> None:
    assert (await _with_file(dify, "hide_files")).status_code == 200
    assert dify.run.files == []
