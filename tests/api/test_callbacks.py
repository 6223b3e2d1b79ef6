"""POST /callbacks/{token}: no key, one right, plain refusals."""

import logging
from typing import Any

import httpx2
import pytest

from tests.api.conftest import Api, OpenApi
from tests.rig.calling import URL, Caller
from tests.rig.working import Gate

FLOW = {"name": "flow", "handler": {"use": "caller"}, "retry": {"base": "20ms", "cap": "100ms"}}


@pytest.fixture
def caller() -> Caller:
    return Caller(begin=Gate())


@pytest.fixture
def waiting(open_api: OpenApi, caller: Caller) -> Api:
    """A board with one task `T-1` that was sent out and is not yet waiting for its callback."""
    api = open_api(caller, work=True, max_json=10_000)
    api.types(FLOW)
    api.submit(type="flow")
    return api


def call(api: Api, token: str, **more: Any) -> httpx2.Response:
    """As somebody without a key."""
    return httpx2.request(more.pop("method", "POST"), f"{api.url}/api/v1/callbacks/{token}", trust_env=False, **more)


def settle(api: Api, caller: Caller) -> dict[str, Any]:
    assert caller.begin is not None
    caller.begin.open()
    task: dict[str, Any] = api.get("/tasks/T-1?wait=30").json()
    return task


def test_the_token_is_the_right(waiting: Api, caller: Caller) -> None:
    token = caller.token()
    first = call(waiting, token, json={"status": "succeeded", "result": {"label": "ok"}, "message": "Fine."})
    assert first.status_code == 200
    assert first.json() == {
        "task_id": "T-1",
        "attempt": 1,
        "status": "succeeded",
        "result": {"label": "ok"},
        "message": "Fine.",
        "recorded_at": first.json()["recorded_at"],
    }
    assert first.json()["recorded_at"].endswith("Z")
    again = call(waiting, f"{token}/", json={"message": "Fine.", "status": "succeeded", "result": {"label": "ok"}})
    assert (again.status_code, again.json()) == (200, first.json() | {"repeated": True})
    assert settle(waiting, caller)["result"] == {"label": "ok"}


def test_whoever_was_recorded_stands(waiting: Api, caller: Caller) -> None:
    token = caller.token()
    assert call(waiting, token, json={"status": "succeeded", "result": 1}).status_code == 200
    other = call(waiting, token, json={"status": "succeeded", "result": 2})
    assert (other.status_code, other.json()["code"]) == (409, "callback_differs")
    assert settle(waiting, caller)["result"] == 1
    assert "callback_late" in [event["kind"] for event in waiting.events()]


def test_a_late_call_is_told_how_the_task_stands(waiting: Api, caller: Caller) -> None:
    """B025: what comes after the cancellation changes nothing."""
    token = caller.token()
    assert waiting.post("/tasks/T-1/cancel", json={}).status_code == 200
    assert waiting.get("/tasks/T-1?wait=30").json()["status"] == "cancelled"
    late = call(waiting, token, json={"status": "succeeded", "result": 1})
    assert (late.status_code, late.json()["code"]) == (409, "callback_late")
    assert late.json()["details"] == [{"status": "cancelled"}]
    assert waiting.task()["result"] is None


def test_progress_is_shown(waiting: Api, caller: Caller) -> None:
    answer = call(waiting, caller.token(), json={"status": "progress", "percent": 40, "message": "Half."})
    assert (answer.status_code, answer.json()["status"]) == (200, "progress")
    [attempt] = waiting.get("/tasks/T-1/attempts").json()["data"]
    assert (attempt["progress"]["percent"], attempt["progress"]["message"]) == (40, "Half.")
    assert waiting.task()["status"] == "running"


def test_an_unknown_address_tells_nothing(waiting: Api, caller: Caller) -> None:
    """Neither whether it ever was one, nor what is wrong with the body, of which nothing is read."""
    token = caller.token()
    told = set()
    for wrong in (token[:-1], token + "A", token.swapcase(), "x", "%00", "a" * 5000):
        for content in (b'{"status": "succeeded"}', b"{", b"x" * 20_000):
            answer = call(waiting, wrong, content=content)
            assert answer.status_code == 404
            told.add((answer.json()["code"], answer.json()["message"]))
    assert told == {("callback_not_found", "There is no such callback address.")}
    assert waiting.task()["status"] == "running"


def test_only_a_post_does_anything(waiting: Api, caller: Caller) -> None:
    """B071: whoever only opens the address, as link scanners do, uses nothing up."""
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        assert call(waiting, caller.token(), method=method).status_code == 405
    assert "called_back" not in [event["kind"] for event in waiting.events()]


WRONG = [
    (b"{", 400, "invalid_json", ""),
    (b"{}", 422, "invalid_field", "status"),
    (b'{"status": "done"}', 422, "invalid_field", "status"),
    (b'{"status": "succeeded", "results": 1}', 422, "unknown_field", "results"),
    (b'{"status": "progress", "percent": 101}', 422, "invalid_field", "percent"),
    (b'{"status": "failed", "class": "grave"}', 422, "invalid_field", "class"),
    (b'{"status": "succeeded", "result": NaN}', 422, "invalid_text", "result"),
    (b'{"status": "succeeded", "result": "' + b"x" * 20_000 + b'"}', 413, "json_too_large", "BOARD_MAX_JSON"),
]


def test_a_wrong_body_spends_nothing(waiting: Api, caller: Caller) -> None:
    token = caller.token()
    for content, status, code, names in WRONG:
        answer = call(waiting, token, content=content)
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert names in answer.text
    assert call(waiting, token, content=b'{"status": "succeeded", "result": 1}').status_code == 200
    assert settle(waiting, caller)["result"] == 1


def test_the_token_is_never_logged(waiting: Api, caller: Caller, caplog: pytest.LogCaptureFixture) -> None:
    token = caller.token()
    with caplog.at_level(logging.DEBUG, "board"):
        for content in (b"{", b'{"status": "progress"}', b'{"status": "succeeded"}', b'{"status": "failed"}'):
            call(waiting, token, content=content)
        settle(waiting, caller)
    assert token not in caplog.text
    assert URL not in caplog.text
