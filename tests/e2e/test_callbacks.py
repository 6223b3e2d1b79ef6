"""Workflows that call back, over real HTTP, while the worker that started them is killed."""

import json
import time
from collections.abc import Callable

import httpx2

from tests.rig.board import StartBoard
from tests.rig.receiver import Receiver
from tests.rig.standin import RunningStandin

LEAD = {"text": "{{ payload.text }}", "former": "{{ callback.url }}"}


def test_the_worker_is_killed_and_the_callbacks_come_before_the_next_one(
    database_url: str, board_process: StartBoard, receiver: Receiver, dify_standin: RunningStandin
) -> None:
    """B013, B033: each workflow is started once, and its result is found by whoever works next."""
    env = {"BOARD_LEASE": "2s"}
    front = board_process("api", env=env, database_url=database_url)
    env["BOARD_PUBLIC_URL"] = front.url
    api = front.api
    made = api.post(
        "/types",
        json={
            "connections": [
                {"name": "n8n", "kind": "webhook", "url": f"{receiver.url}/webhook/flow"},
                {"name": "leads", "kind": "dify", "url": dify_standin.api_url, "key": "app-demo-leads"},
            ],
            "types": [
                {"name": "flow", "handler": {"use": "n8n.webhook", "connection": "n8n", "timeout": "1h"}},
                {
                    "name": "lead",
                    "handler": {
                        "use": "dify.workflow",
                        "connection": "leads",
                        "inputs": LEAD,
                        "wait": "callback",
                        "timeout": "1h",
                    },
                },
            ],
        },
    )
    assert made.status_code == 200, made.text
    worker = board_process("worker", env=env, database_url=database_url)
    api.post("/tasks", json={"type": "flow", "task_id": "F"})
    api.post("/tasks", json={"type": "lead", "task_id": "L", "payload": {"text": "[[fault:slow seconds=600]] Hello"}})
    flow = json.loads(receiver.wait_for(1, timeout=30)[0].body)["callback_url"]
    until(lambda: any(it["external_reference"] for it in api.get("/tasks/L/operations").json()["data"]))
    worker.kill()
    [run] = dify_standin.app.state.runs
    for address, result in ((flow, {"by": "n8n"}), (run.inputs["former"], {"by": "Dify"})):
        assert address.startswith(f"{front.url}/api/v1/callbacks/")
        body = {"status": "succeeded", "result": result}
        answers = [httpx2.post(address, json=body, trust_env=False) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 200]
        assert [answer.json().get("repeated") for answer in answers] == [None, True]

    after = board_process("worker", env=env, database_url=database_url)
    for task_id, by in (("F", "n8n"), ("L", "Dify")):
        until(lambda task_id=task_id: api.get(f"/tasks/{task_id}").json()["status"] == "done")
        assert api.get(f"/tasks/{task_id}").json()["result"] == {"by": by}
    assert len(receiver.requests) == 1
    assert len(dify_standin.app.state.runs) == 1
    for process in (front, worker, after):
        assert flow.rpartition("/")[2] not in process.log


def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Ask until it holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.05)
