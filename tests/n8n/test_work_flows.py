"""n8n as an outside worker, and the sample flows that act outside: nothing is done twice, nothing is lost."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest

from tests.n8n.board import TheBoard
from tests.n8n.conftest import SECRET
from tests.n8n.server import OLD, Flows, N8n, node, sample, wait_until
from tests.rig.receiver import Receiver, Reply

PUBLISHES = pytest.mark.skipif(OLD, reason="the Crypto node of 1.x has no credential for the secret")
LINES = [{"amount": 100.0}, {"amount": 19.0}]


def submit(board: TheBoard, task_id: str, **payload: Any) -> None:
    board.post("/tasks", {"type": "invoice.read", "task_id": task_id, "payload": payload}).raise_for_status()


def answers(status: int, body: dict[str, Any]) -> Reply:
    return Reply(status=status, body=json.dumps(body).encode())


def test_n8n_claims_works_and_hands_in(flows: Flows, board: TheBoard) -> None:
    submit(board, "W-1", lines=LINES)
    submit(board, "W-2")  # has no lines: the work fails, twice, and then for good
    submit(board, "W-3", lines=[])
    flow = flows.sample("work-outside", every_seconds=1, board=board.url)
    done = board.wait("W-1", "done")
    assert (done["result"]["total"], done["judgement"]["summary"]) == (119.0, "Read by n8n.")
    assert board.wait("W-3", "done")["result"]["total"] == 0
    again = board.wait("W-2", "retrying", "failed")
    assert "The invoice has no lines." in again["last_error"]
    if again["status"] == "retrying":
        board.post("/tasks/W-2/run-now").raise_for_status()
    failed = board.wait("W-2", "failed")
    assert failed["retry_count"] == 1
    flow.deactivate()
    ran = [execution for execution in flow.executions() if "Loop Over Items" in execution.ran]
    assert ran[0].runs("Heartbeat") >= 1
    attempts = board.get("/tasks/W-1/attempts")["data"]
    assert len(attempts) == 1


def worker(board: TheBoard, *, lease: int, hangs_at: str | None = None) -> dict[str, Any]:
    """The sample that claims, once a second and without waiting on the line. hangs_at: work that never ends."""
    flow = sample("work-outside")
    for field in node(flow, "Settings")["parameters"]["assignments"]["assignments"]:
        field["value"] = {"board": board.url, "lease": lease}.get(field["name"], field["value"])
    node(flow, "Schedule")["parameters"]["rule"] = {"interval": [{"field": "seconds", "secondsInterval": 1}]}
    claim = node(flow, "Claim")["parameters"]
    claim["url"] = claim["url"].removesuffix("?wait=20")
    node(flow, "Fail")["waitBetweenTries"] = 0  # n8n tries a 409 again like anything else
    if hangs_at:
        http = {"type": "n8n-nodes-base.httpRequest", "typeVersion": 4.2}
        node(flow, "Work").update(http | {"parameters": {"method": "GET", "url": hangs_at, "options": {}}})
    return flow


def test_a_claim_that_was_lost_ends_as_lost_and_its_result_does_not_count(
    flows: Flows, board: TheBoard, receiver: Receiver
) -> None:
    """The lease runs out while the work takes longer; another worker has the task meanwhile, and its result counts."""
    receiver.default = Reply(hang=True)
    submit(board, "lost-1", lines=LINES)
    flow = flows.add(worker(board, lease=1, hangs_at=receiver.url))
    receiver.wait_for(1, timeout=30)
    flow.deactivate()
    wait_until(lambda: board.task("lost-1")["crash_count"] == 1, "the board has missed the heartbeat")
    board.post("/tasks/lost-1/run-now")
    wanted = {"worker": "another", "types": ["invoice.read"], "lease": 600}
    [claim] = board.post("/claims?wait=20", wanted).json()["data"]
    assert claim["task"]["task_id"] == "lost-1"
    receiver.close()  # the work of n8n ends at last, with an error

    def lost() -> list[dict[str, Any]]:
        return [item for one in flow.executions() if "Lost" in one.ran for item in one.output("Lost")]

    [item] = wait_until(lost, "n8n has been told that its claim is lost")
    assert item["task_id"] == "lost-1"
    assert "lease" in item["why"]
    answer = board.post(f"/claims/{claim['claim_id']}/complete", {"result": {"total": 7}, "review": "never"})
    assert answer.json()["result"] == {"total": 7}


def test_n8n_is_killed_in_the_middle_and_the_task_is_done_once(
    n8n: N8n, flows: Flows, board: TheBoard, receiver: Receiver
) -> None:
    receiver.default = Reply(hang=True)
    submit(board, "killed-1", lines=LINES)
    first = flows.add(worker(board, lease=1, hangs_at=receiver.url))
    receiver.wait_for(1, timeout=30)
    first.deactivate()
    n8n.kill()
    wait_until(lambda: board.task("killed-1")["crash_count"] == 1, "the board has missed the heartbeat")
    n8n.start()
    flows.add(worker(board, lease=600))
    board.post("/tasks/killed-1/run-now")
    task = board.wait("killed-1", "done")
    assert task["result"]["total"] == 119.0
    assert len(board.get("/tasks/killed-1/attempts")["data"]) == 2
    assert board.kinds("killed-1").count("created") == 1


def test_a_task_that_is_cancelled_meanwhile_is_given_back(flows: Flows, board: TheBoard, receiver: Receiver) -> None:
    """Two tasks in one loop: while n8n works on one of them the other is cancelled."""
    receiver.default = Reply(hang=True)
    submit(board, "off-1", lines=LINES)
    submit(board, "off-2", lines=LINES)
    flow = flows.add(worker(board, lease=600, hangs_at=receiver.url))
    receiver.wait_for(1, timeout=30)
    flow.deactivate()
    board.wait("off-2", "running")
    board.post("/tasks/off-2/cancel").raise_for_status()
    receiver.close()  # the work on the first one ends, with an error
    board.wait("off-2", "cancelled")

    def given_back() -> list[dict[str, Any]]:
        return [item for one in flow.executions() if "Give back" in one.ran for item in one.output("Give back")]

    [item] = wait_until(given_back, "n8n has given the task back")
    assert (item["task_id"], item["status"]) == ("off-2", "cancelled")
    board.post("/tasks/off-1/cancel")


@PUBLISHES
def test_a_post_goes_out_after_the_approval_and_its_number_comes_back(
    flows: Flows, board: TheBoard, receiver: Receiver
) -> None:
    receiver.default = answers(201, {"id": "post-77"})
    flow = flows.sample("publish-after-approval", board=board.url, website=receiver.url)
    forged = flow.post("board-publish", json={"event": "task.action"}, headers={"X-Board-Signature": "sha256=00"})
    assert forged.status_code == 401
    payload = {"post_id": "p1", "title": "Opening", "text": "我们开业了"}
    board.post("/tasks", {"type": "post.publish", "payload": payload}).raise_for_status()
    board.wait("post:p1", "needs_review")
    assert receiver.requests == []
    board.post("/tasks/post:p1/approve").raise_for_status()
    board.wait("post:p1", "done")
    [request] = receiver.requests
    assert json.loads(request.body) == payload
    [operation] = board.get("/tasks/post:p1/operations")["data"]
    assert (operation["key"], operation["status"]) == ("publish:p1", "confirmed")
    assert request.headers["idempotency-key"].startswith("msg_")


@PUBLISHES
def test_the_signature_is_that_over_the_raw_bytes(flows: Flows, board: TheBoard, receiver: Receiver) -> None:
    receiver.default = answers(201, {"id": "post-78"})
    flow = flows.sample("publish-after-approval", board=board.url, website=receiver.url)
    raw = '{ "task":  {"payload": {"text": "好"}}}'.encode()
    signature = hmac.new(SECRET.encode(), raw, hashlib.sha256).hexdigest()
    headers = {"X-Board-Signature": f"sha256=old sha256={signature}", "Content-Type": "application/json"}
    assert flow.post("board-publish", content=raw, headers=headers).json() == {"reference": "post-78"}
    assert flow.post("board-publish", content=raw + b" ", headers=headers).status_code == 401


@PUBLISHES
def test_a_website_that_refuses_fails_the_task_with_its_words(
    flows: Flows, board: TheBoard, receiver: Receiver
) -> None:
    receiver.default = answers(409, {"message": "The title exists."})
    flows.sample("publish-after-approval", board=board.url, website=receiver.url)
    board.post("/tasks", {"type": "post.publish", "payload": {"post_id": "p2", "title": "t", "text": "x"}})
    board.wait("post:p2", "needs_review")
    # the address answers 404 until n8n has made the flow active
    wait_until(lambda: flows_ready(flows), "the webhook is registered")
    board.post("/tasks/post:p2/approve").raise_for_status()
    task = board.wait("post:p2", "failed")
    assert "422" in task["last_error"]
    [operation] = board.get("/tasks/post:p2/operations")["data"]
    assert operation["status"] == "rejected"
    assert "The title exists." in json.dumps(operation["deliveries"])


def flows_ready(flows: Flows) -> bool:
    return flows.last.post("board-publish", json={}).status_code == 401


@pytest.fixture
def order() -> dict[str, Any]:
    return {"order_id": "A-7", "lines": [{"text": "Gift box", "amount": 12.5}]}


def test_an_invoice_is_written_once(flows: Flows, board: TheBoard, receiver: Receiver, order: dict[str, Any]) -> None:
    receiver.default = answers(201, {"id": "INV-1"})
    flow = flows.sample("invoice-once", board=board.url, billing=receiver.url)
    assert flow.post("board-invoice", json=order).json() == {"invoice": "INV-1", "written_now": True}
    assert flow.post("board-invoice", json=order).json() == {"invoice": "INV-1", "written_now": False}
    other = flow.post("board-invoice", json=order | {"lines": []})
    assert other.status_code == 409
    assert len(receiver.requests) == 1
    assert receiver.requests[0].headers["idempotency-key"] == "invoice:A-7"


@pytest.mark.parametrize(
    ("reply", "status"),
    [(answers(422, {"message": "No such customer."}), "rejected"), (Reply(close=True), "unknown")],
    ids=["refused", "lost"],
)
def test_an_invoice_that_failed_or_nobody_knows_of(
    flows: Flows, board: TheBoard, receiver: Receiver, reply: Reply, status: str
) -> None:
    receiver.default = reply
    flow = flows.sample("invoice-once", board=board.url, billing=receiver.url)
    body = {"order_id": f"B-{status}", "lines": []}
    answer = flow.post("board-invoice", json=body)
    assert (answer.status_code, answer.json()["status"]) == (502, status)
    [operation] = board.get("/operations", key=f"invoice:B-{status}")["data"]
    assert operation["status"] == status
    again = flow.post("board-invoice", json=body)
    if status == "unknown":  # nobody writes it again until a person has said what happened
        assert again.status_code == 409
        assert len(receiver.requests) == 1
    else:
        assert len(receiver.requests) == 2
