"""What was called, what came back, and sending a callback again, over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.api.conftest import Api, OpenApi
from tests.rig.receiver import Receiver, Reply


def operations(api: Api, task_id: str = "T-1") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get(f"/tasks/{task_id}/operations").json()["data"]
    return found


def test_the_log_of_tries_and_sending_again(open_api: OpenApi, receiver: Receiver) -> None:
    receiver.reply(Reply(status=404, body="没有这个 <b>address</b>".encode()))
    api = open_api(work=True, allow_private_targets=["127.0.0.1"])
    url = f"{receiver.url}/hook?token=s3cret"
    assert api.post("/tasks?wait=15", json={"type": "trial", "task_id": "T-1", "callback_url": url}).status_code == 201
    receiver.wait_for(1)
    wait_for(lambda: operations(api)[0]["status"] == "rejected")
    [operation] = operations(api)
    [tried] = operation["deliveries"]
    assert (tried["http_status"], tried["outcome"], tried["detail"]) == (404, "rejected", "没有这个 <b>address</b>")
    assert 0 <= tried["milliseconds"] < 10_000
    assert tried["at"].endswith("Z")
    assert operation["target"] == f"{receiver.url}/hook?…"
    assert "s3cret" not in str(operation)
    answer = api.post(f"/operations/{operation['id']}/resend", json={"reason": "The address is there now."})
    assert (answer.status_code, answer.json()["status"]) == (200, "reserved")
    receiver.wait_for(2)
    wait_for(lambda: operations(api)[0]["status"] == "confirmed")
    tries = operations(api)[0]["deliveries"]
    assert [it["http_status"] for it in tries] == [200, 404], "the latest first"
    events = api.get("/tasks/T-1/events").json()["data"]
    assert events[-1]["kind"] == "callback_resent"
    assert events[-1]["note"] == "The address is there now."
    assert api.post(f"/operations/{operation['id']}/resend").status_code == 200


def test_what_cannot_be_sent_again(open_api: OpenApi, receiver: Receiver) -> None:
    api = open_api(allow_private_targets=["127.0.0.1"])
    for wrong in ("0", "12345", "abc", "9" * 40):
        answer = api.post(f"/operations/{wrong}/resend")
        assert (answer.status_code, answer.json()["code"]) == (404, "operation_not_found")
    assert api.post("/operations/1/resend", json={"why": "x"}).status_code == 422


def test_who_may(open_api: OpenApi, receiver: Receiver) -> None:
    api = open_api(work=True, allow_private_targets=["127.0.0.1"])
    api.post("/tasks?wait=15", json={"type": "trial", "task_id": "T-1", "callback_url": receiver.url})
    receiver.wait_for(1)
    [operation] = operations(api)
    path = f"/operations/{operation['id']}/resend"
    assert api.as_key("read", name="reads").post(path).status_code == 403
    assert api.as_key("submit", name="other").post(path).status_code == 404
    wait_for(lambda: operations(api)[0]["status"] == "confirmed")
    assert len(receiver.requests) == 1


def wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 15
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)
