"""Streams that break and HTTP answers in place of a stream: each fault does what dify_app's docstring says."""

from __future__ import annotations

import base64

import httpx
import pytest

from integrations.demo.faults import FAULTS
from tests.integrations.demo.conftest import TEXT, Client, events_of, names

pytestmark = pytest.mark.asyncio(loop_scope="module")  # the server lives in that loop


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
        await read_into(seen, dify, "stall", timeout=1.0)  # enough for what comes before
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
