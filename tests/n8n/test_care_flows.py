"""The sample flows that look after the board."""

from __future__ import annotations

import json

from tests.n8n.board import TheBoard
from tests.n8n.server import Flows
from tests.rig.receiver import Receiver


def texts(receiver: Receiver) -> list[str]:
    return [json.loads(request.body)["text"] for request in receiver.requests]


def test_the_digest_names_what_has_failed(flows: Flows, board: TheBoard, receiver: Receiver) -> None:
    board.apply({"name": "breaks", "handler": {"use": "outside", "side_effects": False}, "retry": {"max": 0}})
    board.post("/tasks", {"type": "breaks", "task_id": "dead-1", "title": "发票 7"}).raise_for_status()
    [claim] = board.post("/claims", {"worker": "w", "types": ["breaks"]}).json()["data"]
    board.post(f"/claims/{claim['claim_id']}/fail", {"message": "The scan is black.", "class": "permanent"})
    board.wait("dead-1", "failed")
    flow = flows.sample("dead-letter-digest", every_seconds=1, board=board.url, chat=receiver.url)
    receiver.wait_for(1, timeout=30)
    flow.deactivate()
    text = texts(receiver)[0]
    assert "tasks have failed:\n- " in text
    assert "发票 7: The scan is black." in text
    assert f"{board.url}/tasks/dead-1" in text


def test_the_alert_comes_when_too_much_waits_and_not_before(flows: Flows, board: TheBoard, receiver: Receiver) -> None:
    board.apply({"name": "piles", "handler": {"use": "outside", "side_effects": False}})
    waiting = sum(lane["ready"] for lane in board.get("/queue")["lanes"])
    calm = flows.sample("queue-depth-alert", every_seconds=1, board=board.url, chat=receiver.url)
    assert calm.ended(1)[0].ran[-1] == "All well"
    calm.deactivate()
    for number in range(3):
        board.post("/tasks", {"type": "piles", "task_id": f"pile-{number}"}).raise_for_status()
    alarmed = flows.sample(
        "queue-depth-alert", every_seconds=1, board=board.url, chat=receiver.url, most_waiting=waiting + 2
    )
    receiver.wait_for(1, timeout=30)
    alarmed.deactivate()
    assert texts(receiver)[0].startswith(f"{waiting + 3} tasks wait, the longest for ")
    for number in range(3):
        board.post(f"/tasks/pile-{number}/cancel")


def test_a_p0_that_lies_is_told_once(flows: Flows, board: TheBoard, receiver: Receiver) -> None:
    board.apply({"name": "urgent", "handler": {"use": "outside", "side_effects": False}, "priority": "P0"})
    board.post("/tasks", {"type": "urgent", "task_id": "P0-1", "title": "Outage"}).raise_for_status()
    flow = flows.sample("p0-escalation", every_seconds=1, board=board.url, chat=receiver.url, minutes=0)
    told = flow.ended(3)  # the later ones find nothing that is not told
    flow.deactivate()
    about = [text for text in texts(receiver) if "Outage" in text]
    assert len(about) == 1, about
    assert about[0].startswith("P0 is pending since ")
    assert board.task("P0-1")["tags"] == ["escalated"]
    assert sum("Tell" in execution.ran for execution in told) == 1
