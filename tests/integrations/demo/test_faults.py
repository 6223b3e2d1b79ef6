"""Every fault switch does what its line in dify_app's docstring says, through real HTTP."""

from __future__ import annotations

import asyncio
import base64
import inspect
import re
from typing import Any

import httpx
import pytest

from integrations.demo import dify_app
from integrations.demo.faults import FAULTS
from tests.integrations.demo.conftest import TEXT, Client, events_of, names

pytestmark = pytest.mark.asyncio(loop_scope="module")  # the server lives in that loop


async def test_every_fault_is_documented() -> None:
    text = inspect.getdoc(dify_app) or ""
    assert [name for name in FAULTS if name != "none" and not re.search(rf"\b{name}\b", text)] == []


def last(events: list[dict[str, Any]]) -> dict[str, Any]:
    assert events[-1]["event"] == "workflow_finished"
    data: dict[str, Any] = events[-1]["data"]
    return data


async def read_into(seen: list[bytes], dify: Client, fault: str, timeout: float = 10) -> None:
    """Keep what a stream gave before it broke."""
    body = {"inputs": {"text": TEXT, "standin_fault": fault}, "user": "board:1:1", "response_mode": "streaming"}
    async with dify.http.stream("POST", "/v1/workflows/run", json=body, timeout=timeout) as answer:
        async for piece in answer.aiter_raw():
            seen.append(piece)


# Streams that break


async def test_no_terminal(dify: Client) -> None:
    events = await dify.streamed("no_terminal")
    assert names(events)[-2:] == ["text_chunk", "text_chunk"]
    assert dify.run.status == "running"
    await dify.run.settled()
    assert (await dify.detail(events[0]["workflow_run_id"]))["status"] == "succeeded"


async def test_no_terminal_running(dify: Client) -> None:
    events = await dify.streamed("no_terminal_running seconds=0.5")
    assert "workflow_finished" not in names(events)
    assert (await dify.detail(dify.run.id))["status"] == "running"
    await dify.run.settled()
    assert (await dify.detail(dify.run.id))["status"] == "succeeded"
    assert FAULTS["no_terminal_running"].seconds == 30


@pytest.mark.parametrize(("detail", "status"), [("running", 200), ("missing", 404), ("error", 500)])
async def test_no_terminal_unknown(dify: Client, detail: str, status: int) -> None:
    await dify.streamed(f"no_terminal_unknown detail={detail}")
    await dify.run.settled()
    answer = await dify.http.get(f"/v1/workflows/run/{dify.run.id}")
    assert answer.status_code == status
    if status == 200:
        assert (answer.json()["status"], answer.json()["outputs"]) == ("running", {})
    assert len(await dify.log(created_by_end_user_session_id="board:1:1")) == (0 if detail == "missing" else 1)


async def test_drop_before_id(dify: Client) -> None:
    """B013: nothing was seen, the log shows nothing at once, and the run completes."""
    with pytest.raises(httpx.RemoteProtocolError):
        await dify.start("drop_before_id queue_seconds=0.2")
    assert await dify.log(created_by_end_user_session_id="board:1:1") == []
    assert (await dify.http.get(f"/v1/workflows/run/{dify.run.id}")).status_code == 404
    await dify.run.settled()
    rows = await dify.log(created_by_end_user_session_id="board:1:1")
    assert [row["workflow_run"]["status"] for row in rows] == ["succeeded"]


async def test_drop_after_id(dify: Client) -> None:
    seen: list[bytes] = []
    with pytest.raises(httpx.RemoteProtocolError):
        await read_into(seen, dify, "drop_after_id")
    assert names(events_of(b"".join(seen).decode())) == ["workflow_started"]
    await dify.run.settled()
    assert dify.run.status == "succeeded"


@pytest.mark.parametrize("mode", ["streaming", "blocking"])
async def test_drop_not_started(dify: Client, mode: str) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        await dify.start("drop_not_started", mode)
    assert dify.memory.book.started == 0


async def test_stall(dify: Client) -> None:
    """Open, but not even pings: only a read time-out ends it."""
    seen: list[bytes] = []
    with pytest.raises(httpx.ReadTimeout):
        await read_into(seen, dify, "stall", timeout=0.3)
    assert b"".join(seen).count(b"event: ping") == 1
    assert b"".join(seen).count(b"data: ") == 1
    assert (await dify.detail(dify.run.id))["status"] == "running"


@pytest.mark.parametrize("mode", ["streaming", "blocking"])
async def test_stall_before_answer(dify: Client, mode: str) -> None:
    with pytest.raises(httpx.ReadTimeout):
        await dify.http.post(
            "/v1/workflows/run",
            json={"inputs": {"text": TEXT, "standin_fault": "stall_before_answer"}, "user": "u", "response_mode": mode},
            timeout=0.3,
        )
    assert dify.memory.book.started == 0


async def test_the_idle_limit_ends_a_stream_whose_run_goes_on(dify: Client) -> None:
    events = await dify.streamed("slow seconds=6")
    assert "workflow_finished" not in names(events)
    assert dify.run.status == "running"


async def test_raw_bytes_in_pieces(dify: Client) -> None:
    """B015: any bytes, cut anywhere."""
    data = 'data: {"event": "x"}\r\n\r\n: 你好\n\nevent: ping\n\n'.encode()
    fault = {"fault": "raw", "raw": base64.b64encode(data).decode(), "sizes": [1, 30, 2], "every": 5, "pause": 0.02}
    await dify.http.post("/_standin/faults", json={"faults": [fault]})
    body = {"inputs": {"text": TEXT}, "user": "u", "response_mode": "streaming"}
    async with dify.http.stream("POST", "/v1/workflows/run", json=body) as answer:
        pieces = [piece async for piece in answer.aiter_raw()]
    assert b"".join(pieces) == data
    assert [len(piece) for piece in pieces[:4]] == [1, 30, 2, 5]
    assert dify.memory.book.started == 0


async def test_raw_bytes_beside_a_run(dify: Client) -> None:
    run_id = "11111111-aaaa-4bbb-8ccc-0123456789d0"
    fault = {"fault": "raw", "raw": "", "start": True, "run_id": run_id}
    await dify.http.post("/_standin/faults", json={"faults": [fault]})
    assert (await dify.start()).content == b""
    await dify.run.settled()
    assert (await dify.detail(run_id))["status"] == "succeeded"


async def test_the_run_id_header_of_newer_releases(dify: Client) -> None:
    await dify.http.post("/_standin/faults", json={"faults": [{"fault": "none", "run_id_header": True}]})
    assert (await dify.start()).headers["x-workflow-run-id"] == dify.run.id
    assert "x-workflow-run-id" not in (await dify.start()).headers


# HTTP answers in place of the stream


@pytest.mark.parametrize("mode", ["streaming", "blocking"])
async def test_html_504(dify: Client, mode: str) -> None:
    answer = await dify.start("html_504", mode)
    assert answer.status_code == 504
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.text.startswith("<html>")
    await dify.run.settled()
    rows = await dify.log(created_by_end_user_session_id="board:1:1")
    assert rows[0]["workflow_run"]["status"] == "succeeded"


@pytest.mark.parametrize(
    ("fault", "status", "code", "message"),
    [
        ("provider_rate_limit", 400, "completion_request_error", "Error code: 429"),
        ("rate_limit", 429, "rate_limit_error", "quota"),
        ("too_many_requests", 400, "invalid_param", "Too many requests. Please try again later."),
        ("invalid_param", 400, "invalid_param", "query is required in input form"),
        ("unauthorized", 401, "unauthorized", "Access token is invalid"),
        ("http", 500, "internal_server_error", "Internal Server Error"),
    ],
)
@pytest.mark.parametrize("mode", ["streaming", "blocking"])
async def test_http_errors(dify: Client, fault: str, status: int, code: str, message: str, mode: str) -> None:
    """B021: the answers of http_errors.json."""
    answer = await dify.start(fault, mode)
    assert (answer.status_code, answer.json()["status"], answer.json()["code"]) == (status, status, code)
    assert message in answer.json()["message"]
    assert answer.headers.get("retry-after") == ("3" if status == 429 else None)
    assert dify.memory.book.started == 0


async def test_any_http_answer(dify: Client) -> None:
    fault = {
        "fault": "http",
        "http_status": 503,
        "code": "unknown",
        "message": "later",
        "headers": {"Retry-After": "7"},
        "start": True,
    }
    await dify.http.post("/_standin/faults", json={"faults": [fault]})
    answer = await dify.start()
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
    assert answer.json() == {"code": "unknown", "message": "later", "status": 503}
    assert dify.memory.book.started == 1


@pytest.mark.parametrize(
    ("on", "method", "path"),
    [
        ("detail", "GET", "/v1/workflows/run/x"),
        ("logs", "GET", "/v1/workflows/logs"),
        ("stop", "POST", "/v1/workflows/tasks/x/stop"),
        ("events", "GET", "/v1/workflow/x/events"),
        ("upload", "POST", "/v1/files/upload"),
    ],
)
async def test_faults_on_other_calls(dify: Client, on: str, method: str, path: str) -> None:
    fault = {"fault": "http", "http_status": 502, "body": "<html>502</html>", "on": on}
    await dify.http.post("/_standin/faults", json={"faults": [fault]})
    assert (await dify.start()).status_code == 200
    body = {"user": "u"} if method == "POST" else None
    answer = await dify.http.request(method, path, json=body)
    assert (answer.status_code, answer.text) == (502, "<html>502</html>")
    assert (await dify.http.request(method, path, json=body)).status_code != 502


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


# How a fault is chosen


async def test_a_queued_fault_is_used_up(dify: Client) -> None:
    await dify.http.post("/_standin/faults", json={"faults": [{"fault": "failed", "times": 2}, "stopped"]})
    ends = [last(await dify.streamed())["status"] for _ in range(4)]
    assert ends == ["failed", "failed", "stopped", "succeeded"]


async def test_a_queued_fault_waits_for_its_match(dify: Client) -> None:
    await dify.http.post("/_standin/faults", json={"faults": [{"fault": "failed", "match": "board:9:"}]})
    assert last(await dify.streamed())["status"] == "succeeded"
    assert last(await dify.streamed(user="board:9:1"))["status"] == "failed"


async def test_a_marker_in_the_text(dify: Client) -> None:
    text = "Please quote 10 boxes [[fault:failed times=1]]"
    assert last(await dify.streamed(inputs={"text": text}))["status"] == "failed"
    second = last(await dify.streamed(inputs={"text": text}))
    assert second["status"] == "succeeded"
    assert "[[" not in second["outputs"]["summary"]


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({"faults": ["nonsense"]}, "nonsense"),
        ({"faults": [{"fault": "slow", "speed": 3}]}, "speed"),
        ({"faults": [{"fault": "slow", "times": 0}]}, "times"),
        ({"faults": [{"fault": "http", "on": "moon"}]}, "on must be"),
        ({"faults": [{"fault": "raw", "raw": "§"}]}, "base64"),
        ({"pace": {"speed": 1}}, "pace"),
        ({"colour": 1}, "colour"),
    ],
)
async def test_bad_requests_for_faults_name_the_field(dify: Client, body: dict[str, Any], part: str) -> None:
    answer = await dify.http.post("/_standin/faults", json=body)
    assert answer.status_code == 400
    assert part in answer.json()["message"]


async def test_a_bad_fault_in_the_inputs_is_refused(dify: Client) -> None:
    answer = await dify.start("nonsense")
    assert answer.status_code == 400
    assert "nonsense" in answer.json()["message"]


async def test_reset_and_pace(dify: Client) -> None:
    await dify.streamed()
    await dify.http.post("/_standin/faults", json={"faults": ["failed"]})
    answer = await dify.http.post("/_standin/faults", json={"reset": True, "pace": {"run": 0.01}})
    assert answer.json()["queue"] == []
    seen = (await dify.http.get("/_standin/runs")).json()
    assert (seen["started"], seen["runs"], len(seen["requests"])) == (0, [], 0)
    assert dify.memory.pace.run == 0.01


async def test_a_match_looks_at_paths_of_other_calls(dify: Client) -> None:
    fault = {"fault": "http", "http_status": 502, "on": "logs", "match": "board:2:1"}
    await dify.http.post("/_standin/faults", json={"faults": [fault]})
    assert (await dify.http.get("/v1/workflows/logs")).status_code == 200
    query = {"created_by_end_user_session_id": "board:2:1"}
    assert (await dify.http.get("/v1/workflows/logs", params=query)).status_code == 502
