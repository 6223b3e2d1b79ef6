"""The stand-in answers as Dify's Service API does."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.integrations.demo.conftest import TEXT, Client, events_of, names

pytestmark = pytest.mark.asyncio(loop_scope="module")  # the server lives in that loop

ERROR_KEYS = {"code", "message", "status"}


async def test_welcome_needs_no_key(dify: Client) -> None:
    for path in ("/v1/", "/v1"):
        answer = await dify.http.get(path, headers={"Authorization": ""})
        assert answer.status_code == 200
        assert {"welcome", "api_version", "server_version"} <= answer.json().keys()


@pytest.mark.parametrize("value", ["", "Basic app-demo-leads", "Bearer app-unknown", "Bearer"])
async def test_a_wrong_key_is_401(dify: Client, value: str) -> None:
    answer = await dify.http.get("/v1/info", headers={"Authorization": value})
    assert answer.status_code == 401
    assert answer.json().keys() == ERROR_KEYS
    assert answer.json()["code"] == "unauthorized"


async def test_the_schemes_case_does_not_count(dify: Client) -> None:
    answer = await dify.http.get("/v1/info", headers={"Authorization": "bEARER app-demo-articles"})
    assert answer.json()["mode"] == "workflow"
    assert "Demo stand-in" in answer.json()["name"]


async def test_parameters_list_the_start_form(dify: Client) -> None:
    body = (await dify.http.get("/v1/parameters")).json()
    form = [(kind, field) for item in body["user_input_form"] for kind, field in item.items()]
    required = {field["variable"] for _, field in form if field["required"]}
    assert required == {"text"}
    assert {"file_upload", "system_parameters"} <= body.keys()


async def test_blocking_answer(dify: Client) -> None:
    body = (await dify.start(mode="blocking")).json()
    assert body.keys() == {"task_id", "workflow_run_id", "data"}
    data = body["data"]
    assert data["status"] == "succeeded"
    assert data["id"] == body["workflow_run_id"]
    assert data["outputs"]["label"] == "hot"
    assert data["outputs"]["by"].startswith("Demo stand-in")
    assert isinstance(data["created_at"], int)


async def test_a_missing_mode_is_blocking(dify: Client) -> None:
    answer = await dify.http.post("/v1/workflows/run", json={"inputs": {"text": TEXT}, "user": "u"})
    assert answer.json()["data"]["status"] == "succeeded"


async def test_stream_framing(dify: Client) -> None:
    answer = await dify.start()
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.text.startswith("event: ping\n\ndata: {")
    assert answer.text.endswith("}\n\n")
    blocks = answer.text.removesuffix("\n\n").split("\n\n")
    assert all(block == "event: ping" or block.startswith("data: ") for block in blocks)
    events = events_of(answer.text)
    assert names(events)[0] == "workflow_started"
    assert names(events)[-1] == "workflow_finished"
    assert len({event["workflow_run_id"] for event in events}) == 1
    assert len({event["task_id"] for event in events}) == 1
    text = "".join(event["data"]["text"] for event in events if event["event"] == "text_chunk")
    assert events[-1]["data"]["outputs"]["summary"] in text


async def test_pings_come_while_nothing_happens(dify: Client) -> None:
    answer = await dify.start("slow seconds=0.3")
    assert answer.text.count("event: ping\n\n") >= 3


@pytest.mark.parametrize("body", [{}, {"user": ""}, {"user": None}])
async def test_a_missing_user_is_invalid_param(dify: Client, body: dict[str, Any]) -> None:
    answer = await dify.http.post("/v1/workflows/run", json={"inputs": {"text": TEXT}} | body)
    assert (answer.status_code, answer.json()) == (
        400,
        {"code": "invalid_param", "message": "Arg user must be provided.", "status": 400},
    )


async def test_unknown_inputs_are_dropped(dify: Client) -> None:
    events = await dify.streamed(inputs={"unheard_of": "x"})
    inputs = json.loads((await dify.detail(events[0]["workflow_run_id"]))["inputs"])
    assert "unheard_of" not in inputs
    assert inputs["text"] == TEXT
    assert inputs["sys.user_id"] == "board:1:1"


@pytest.mark.parametrize(
    ("inputs", "part"),
    [
        ({"text": ""}, "text is required in input form"),
        ({"text": {"a": 1}}, "text in input form must be a string"),
        ({"board_ref": "x" * 31}, "board_ref in input form must be less than 30 characters"),
    ],
)
async def test_refused_inputs(dify: Client, inputs: dict[str, Any], part: str) -> None:
    """Blocking is a clean 400; a stream says it late, as an event without a code, and then stays open."""
    answer = await dify.start(mode="blocking", inputs=inputs)
    assert answer.status_code == 400
    assert answer.json()["code"] == "invalid_param"
    assert part in answer.json()["message"]
    events = await dify.streamed(inputs=inputs)
    assert names(events) == ["error"]
    assert events[0]["status"] == 500
    assert "code" not in events[0]
    assert part in events[0]["message"]
    assert dify.memory.book.started == 0


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b"{", "application/json", 400, "bad_request"),
        (b"[]", "application/json", 400, "bad_request"),
        (b"{}", "text/plain", 415, "unsupported_media_type"),
    ],
)
async def test_bodies_that_are_no_json(dify: Client, content: bytes, kind: str, status: int, code: str) -> None:
    answer = await dify.http.post("/v1/workflows/run", content=content, headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_a_pinned_version(dify: Client) -> None:
    version = (await dify.start(mode="blocking")).json()["data"]["workflow_id"]
    body = {"inputs": {"text": TEXT}, "user": "u"}
    assert (await dify.http.post(f"/v1/workflows/{version}/run", json=body)).status_code == 200
    assert (await dify.http.post("/v1/workflows/draft/run", json=body)).json()["code"] == "bad_request"
    unknown = await dify.http.post("/v1/workflows/00000000-0000-4000-8000-000000000000/run", json=body)
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")


async def test_a_run_is_seen_by_its_own_app_only(dify: Client) -> None:
    events = await dify.streamed()
    path = f"/v1/workflows/run/{events[0]['workflow_run_id']}"
    assert (await dify.http.get(path)).json()["outputs"] == events[-1]["data"]["outputs"]
    other = await dify.http.get(path, headers={"Authorization": "Bearer app-demo-articles"})
    assert (other.status_code, other.json()["code"]) == (404, "not_found")


async def test_a_run_outlives_its_caller(dify: Client) -> None:
    await dify.until_open("slow seconds=0.2", stop_at="workflow_started")
    running = await dify.detail(dify.run.id)
    assert (running["status"], running["outputs"], running["finished_at"]) == ("running", {}, None)
    await dify.run.settled()
    assert (await dify.detail(dify.run.id))["status"] == "succeeded"


async def test_the_log_finds_a_run_by_its_user(dify: Client) -> None:
    before = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    await dify.streamed(user="board:7:1")
    await dify.streamed(user="board:7:2")
    rows = await dify.log(created_by_end_user_session_id="board:7:1", created_at__after=before, limit=20, page=1)
    assert [row["created_by_end_user"]["session_id"] for row in rows] == ["board:7:1"]
    assert rows[0]["workflow_run"]["status"] == "succeeded"
    newest_first = [row["created_by_end_user"]["session_id"] for row in await dify.log()]
    assert newest_first == ["board:7:2", "board:7:1"]
    assert await dify.log(created_at__before=before) == []
    assert await dify.log(created_at__after="2999-01-01T00:00:00Z") == []
    assert len(await dify.log(keyword=rows[0]["workflow_run"]["id"])) == 1
    assert len(await dify.log(status="succeeded", limit=1)) == 1
    page = (await dify.http.get("/v1/workflows/logs", params={"limit": 1, "page": 2})).json()
    assert (page["total"], page["has_more"], page["page"], page["limit"]) == (2, False, 2, 1)


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"page": "x"}, {"created_at__after": "today"}, {"status": "running"}]
)
async def test_the_log_refuses_bad_filters(dify: Client, query: dict[str, str]) -> None:
    answer = await dify.http.get("/v1/workflows/logs", params=query)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_param")


async def test_stop_ends_the_run(dify: Client) -> None:
    await dify.until_open("slow seconds=20", stop_at="workflow_started")
    answer = await dify.http.post(f"/v1/workflows/tasks/{dify.run.task_id}/stop", json={"user": "somebody"})
    assert answer.json() == {"result": "success"}
    await dify.run.settled()
    detail = await dify.detail(dify.run.id)
    assert (detail["status"], detail["error"]) == ("stopped", "Stopped by user.")


async def test_stop_says_success_for_unknown_ids(dify: Client) -> None:
    answer = await dify.http.post("/v1/workflows/tasks/unknown/stop", json={"user": "u"})
    assert answer.json() == {"result": "success"}
    assert (await dify.http.post("/v1/workflows/tasks/unknown/stop", json={})).status_code == 400


async def test_reattach(dify: Client) -> None:
    await dify.until_open("slow seconds=0.3")
    path = f"/v1/workflow/{dify.run.id}/events"
    late = events_of((await dify.http.get(path, params={"user": "board:1:1"})).text)
    assert names(late)[0] != "workflow_started"
    assert names(late)[-1] == "workflow_finished"
    ended = events_of((await dify.http.get(path, params={"user": "board:1:1"})).text)
    assert names(ended) == ["workflow_finished"]
    assert (await dify.http.get(path, params={"user": "another"})).status_code == 404
    assert (await dify.http.get(path)).status_code == 400


async def test_reattach_with_a_snapshot(dify: Client) -> None:
    await dify.until_open("slow seconds=0.3")
    query = {"user": "board:1:1", "include_state_snapshot": "true"}
    events = events_of((await dify.http.get(f"/v1/workflow/{dify.run.id}/events", params=query)).text)
    assert names(events)[0] == "workflow_started"
    assert names(events)[-1] == "workflow_finished"


async def _upload(dify: Client, user: str = "board:1:1", kind: str = "text/plain") -> httpx.Response:
    return await dify.http.post("/v1/files/upload", files={"file": ("a.txt", b"abc", kind)}, data={"user": user})


def _file(upload: httpx.Response, kind: str = "document") -> dict[str, str]:
    return {"type": kind, "transfer_method": "local_file", "upload_file_id": upload.json()["id"]}


async def test_upload_and_use_a_file(dify: Client) -> None:
    upload = await _upload(dify)
    assert upload.status_code == 201
    assert (upload.json()["name"], upload.json()["size"], upload.json()["extension"]) == ("a.txt", 3, "txt")
    for place in ({"files": [_file(upload)]}, {"inputs": {"attachment": _file(upload)}}):
        assert (await dify.start(mode="blocking", **place)).status_code == 200
        assert len(dify.run.files) == 1


async def test_a_file_of_another_user_is_refused(dify: Client) -> None:
    """B023: upload and run must name the same user."""
    upload = await _upload(dify, user="somebody-else")
    answer = await dify.start(mode="blocking", files=[_file(upload)])
    assert (answer.status_code, answer.json()["message"]) == (400, "Invalid upload file")
    assert (await dify.streamed(files=[_file(upload)]))[0]["message"] == "Invalid upload file"


async def test_a_file_must_be_of_the_named_type(dify: Client) -> None:
    answer = await dify.start(mode="blocking", files=[_file(await _upload(dify), "image")])
    assert answer.json()["code"] == "invalid_param"
    assert "type" in answer.json()["message"]


async def test_uploads_that_are_refused(dify: Client) -> None:
    nothing = await dify.http.post("/v1/files/upload", data={"user": "u"}, files={"other": (None, "x")})
    two = await dify.http.post("/v1/files/upload", data={"user": "u"}, files=[("file", b"a"), ("file", b"b")])
    nobody = await dify.http.post("/v1/files/upload", files={"file": b"a"})
    assert [answer.json()["code"] for answer in (nothing, two, nobody)] == [
        "no_file_uploaded",
        "too_many_files",
        "invalid_param",
    ]
    big = {"file": ("a.png", b"\0" * (10 * 1024 * 1024 + 1), "image/png")}
    too_large = await dify.http.post("/v1/files/upload", data={"user": "u"}, files=big)
    assert (too_large.status_code, too_large.json()["code"]) == (413, "file_too_large")


async def test_a_workflow_key_opens_no_chat(dify: Client) -> None:
    chat = await dify.http.post("/v1/chat-messages", json={})
    completion = await dify.http.post("/v1/completion-messages", json={})
    assert (chat.json()["code"], completion.json()["code"]) == ("not_chat_app", "app_unavailable")


async def test_unknown_calls_have_the_error_shape(dify: Client) -> None:
    missing = await dify.http.get("/v1/nothing")
    wrong = await dify.http.put("/v1/info")
    assert missing.json().keys() == wrong.json().keys() == ERROR_KEYS
    assert (missing.status_code, wrong.status_code) == (404, 405)


async def test_what_was_seen_never_holds_the_key(dify: Client) -> None:
    await dify.streamed()
    answer = await dify.http.get("/_standin/runs")
    assert "app-demo-leads" not in json.dumps(answer.json()["requests"])
    assert answer.json()["started"] == 1
    assert answer.json()["runs"][0]["status"] == "succeeded"
    assert answer.json()["requests"][0]["body"]["user"] == "board:1:1"


async def test_the_key_is_judged_before_the_body(dify: Client) -> None:
    headers = {"Authorization": "Bearer app-unknown", "Content-Type": "text/plain"}
    answer = await dify.http.post("/v1/workflows/run", content=b"{", headers=headers)
    assert answer.status_code == 401
