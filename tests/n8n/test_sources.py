"""The sample flows that bring tasks in: whatever comes twice, and by whichever way, is one task."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.n8n.board import TheBoard
from tests.n8n.server import OLD, SAMPLES, Flows, N8n, node, sample
from tests.rig.receiver import Receiver, Reply


def rows(*found: dict[str, str]) -> Reply:
    """What another system answers when it is asked for its rows."""
    return Reply(body=json.dumps({"data": found}).encode())


def test_every_flow_is_imported_as_it_is_shipped(n8n: N8n) -> None:
    there = {flow["name"] for flow in n8n.api("GET", "/workflows", params={"limit": 200})["data"]}
    shipped = {sample(file.stem)["name"] for file in SAMPLES.glob("*.json")}
    assert len(shipped) == len(list(SAMPLES.glob("*.json")))
    assert shipped <= there


def test_intake_of_json(flows: Flows, board: TheBoard) -> None:
    flow = flows.sample("intake", board=board.url)
    answer = flow.post("board-intake", json={"source": "form", "id": "17", "title": "A question", "text": "你好"})
    assert (answer.status_code, answer.json()["task_id"], answer.json()["duplicate"]) == (202, "form:17", False)
    [execution] = flow.ended(1)
    task = board.wait("form:17", "needs_review")
    assert (task["title"], task["payload"]["text"], task["source"]) == ("A question", "你好", "form")
    assert task["origin"] == {"system": "n8n", "workflow_id": flow.id, "execution_id": execution.id}
    assert execution.output("Hand in")[0]["task_id"] == "form:17"
    again = flow.post("board-intake", json={"source": "form", "id": "17", "title": "Another title"})
    assert (again.status_code, again.json()["task_id"], again.json()["duplicate"]) == (202, "form:17", True)
    assert board.task("form:17")["title"] == "A question"


def test_intake_of_a_file(flows: Flows, board: TheBoard) -> None:
    flow = flows.sample("intake", board=board.url)
    answer = flow.post("board-intake", data={"id": "scan"}, files={"file": ("发票.txt", b"119.00", "text/plain")})
    assert (answer.status_code, answer.json()["task_id"]) == (202, "webhook:scan")
    file_id = board.task("webhook:scan")["payload"]["file"]["file"]
    assert board.api.get(f"/files/{file_id}").content == b"119.00"


def test_who_sends_no_id_is_told_so_in_the_words_of_the_board(flows: Flows, board: TheBoard) -> None:
    flow = flows.sample("intake", board=board.url)
    answer = flow.post("board-intake", json={"title": "Without an id"})
    assert answer.status_code == 422
    assert answer.json()["message"].startswith("This type needs a task_id")
    [execution] = flow.ended(1)
    assert execution.output("Hand in", 1)[0]["error"]["status"] == 422


def test_a_webhook_that_is_sent_twice_at_once_gives_one_task(flows: Flows, board: TheBoard) -> None:
    """B001: n8n has two executions of one event; the board has one task."""
    flow = flows.sample("intake", board=board.url)
    flow.post("board-intake", json={"source": "twice", "id": "0"})
    body = {"source": "twice", "id": "1", "text": "the same"}
    with ThreadPoolExecutor(2) as pool:
        answers = [*pool.map(lambda _: flow.post("board-intake", json=body), range(2))]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert sorted(answer.json()["duplicate"] for answer in answers) == [False, True]
    assert len(flow.ended(3)) == 3
    assert len(board.tasks(task_id="twice:1")) == 1
    assert board.kinds("twice:1").count("created") == 1


def test_a_webhook_and_a_schedule_that_bring_the_same_row_give_one_task(
    flows: Flows, board: TheBoard, receiver: Receiver
) -> None:
    receiver.default = rows({"id": "42", "title": "from the sync", "stage": "new"}, {"id": "43", "title": "另一行"})
    intake = flows.sample("intake", board=board.url)
    first = intake.post("board-intake", json={"source": "both", "id": "42", "title": "from the form"})
    assert first.json()["duplicate"] is False
    sync = flows.sample("scheduled-sync", every_seconds=1, board=board.url, rows=receiver.url, source="both")
    executions = sync.ended(2)  # the second run brings nothing new
    assert [execution.status for execution in executions[:2]] == ["success", "success"]
    duplicates = [one["duplicate"] for one in executions[1].output("Loop Over Items")]
    assert duplicates == [True, True]
    assert board.task("both:42")["payload"]["title"] == "from the form"
    assert board.task("both:43")["payload"]["title"] == "另一行"
    assert len(board.tasks(source="both")) == 2
    events = board.get("/tasks/both:42/events")["data"]
    assert [event["kind"] for event in events].count("created") == 1
    assert any(event["kind"] == "duplicate" for event in events), [event["kind"] for event in events]


def test_rows_wait_out_a_board_that_is_down_and_none_is_lost_or_doubled(
    flows: Flows, board: TheBoard, receiver: Receiver
) -> None:
    """The node's own tries: five, five seconds apart. It begins while nobody listens."""
    receiver.default = rows(*({"id": str(n), "title": f"Row {n}"} for n in range(5)))
    board.stop()
    sync = flows.sample("scheduled-sync", every_seconds=1, board=board.url, rows=receiver.url, source="down")
    receiver.wait_for(1)
    sync.deactivate()  # the execution that has begun goes on
    board.start()
    executions = sync.ended(1, timeout=60)
    assert {execution.status for execution in executions} == {"success"}
    assert sorted(task["task_id"] for task in board.tasks(source="down")) == [f"down:{n}" for n in range(5)]
    assert all(board.kinds(f"down:{n}").count("created") == 1 for n in range(5))


def test_a_mail_thread_is_one_task(flows: Flows, board: TheBoard) -> None:
    flow = flows.sample("mail-thread", board=board.url)
    first = {
        "messageId": "<a/1@example.org>",
        "from": {"text": "li@example.org"},
        "subject": "报价",
        "text": "Please quote.",
    }
    reply = {
        "messageId": "<b2@example.org>",
        "references": ["<a/1@example.org>"],
        "inReplyTo": "<a/1@example.org>",
        "from": {"text": "li@example.org"},
        "subject": "AW: something else",
        "text": "Any news?",
    }
    for mail in (first, reply, first):
        flow.post("board-mail", json=mail)
        flow.ended(len(flow.executions()))
    assert [one.status for one in flow.ended(3)] == ["success"] * 3
    [task] = board.tasks(type="mail.answer")
    assert (task["title"], task["payload"]["message_id"]) == ("报价", "<a/1@example.org>")
    [comment] = board.get(f"/tasks/{task['task_id']}/comments")["data"]
    assert comment["text"] == "From li@example.org: Any news?"


def test_a_message_of_a_chat_is_one_task_however_often_it_is_told(flows: Flows, board: TheBoard) -> None:
    flow = flows.sample("chat-message", board=board.url)
    asked = flow.post("board-chat", json={"type": "url_verification", "challenge": "3eZbrw1a"})
    assert asked.json() == {"challenge": "3eZbrw1a"}
    event = {"type": "message", "channel": "C1", "ts": "1700000000.000100", "user": "U1", "text": "Where is my order?"}
    told = {"type": "event_callback", "team_id": "T1", "event": event}
    for _ in range(2):
        assert flow.post("board-chat", json=told).json() == {"task_id": "slack:T1:C1:1700000000.000100"}
    bot = flow.post("board-chat", json=told | {"event": event | {"bot_id": "B1", "ts": "1700000001.000100"}})
    assert bot.json() == {"ignored": True}
    [task] = board.tasks(type="message.answer")
    assert task["payload"] == {"text": "Where is my order?", "user": "U1", "channel": "C1"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030"])
def test_a_sheet_is_imported_and_again_only_what_is_new(flows: Flows, board: TheBoard, encoding: str) -> None:
    """B059: the encoding is named, and the cells are as they were written."""
    sheet = f"sheet-{encoding}"
    named = encoding.removesuffix("-sig")  # with the mark that Excel writes at the beginning
    flow = flows.sample("sheet-import", board=board.url, sheet=sheet, encoding=named)

    def send(*lines: str) -> dict[str, Any]:
        data = "\r\n".join(("id,title,code", *lines)).encode(encoding)
        answer = flow.post("board-sheet", files={"file": ("rows.csv", data, "text/csv")})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    first = send("1,第一行,0012", ",no id,7", "2,second,12")
    assert (first["created"], first["duplicates"], first["errors"]) == (2, 0, 1)
    [bad] = first["bad_rows"]
    assert bad["row"] == 3
    assert "task_id" in bad["message"]
    again = send("1,第一行,0012", "2,second,12", "3,third,x")
    assert (again["created"], again["duplicates"], again["errors"]) == (1, 2, 0)
    payload = board.task(f"{sheet}:1")["payload"]
    assert (payload["title"], payload["code"]) == ("第一行", "0012")


def test_a_failed_execution_is_one_task(flows: Flows, board: TheBoard) -> None:
    watcher = sample("error-workflow")
    node(watcher, "Settings")["parameters"]["assignments"]["assignments"][0]["value"] = board.url
    caught = flows.add(watcher, active=not OLD)  # 1.x does not make it active, and does not ask for it
    hook = {"httpMethod": "POST", "path": "breaks", "responseMode": "onReceived", "options": {}}
    stop = {"errorMessage": "The customer has no address."}
    flow = flows.make(
        {"name": "Webhook", "type": "n8n-nodes-base.webhook", "typeVersion": 2, "position": [0, 0], "parameters": hook},
        {
            "name": "Stop",
            "type": "n8n-nodes-base.stopAndError",
            "typeVersion": 1,
            "position": [200, 0],
            "parameters": stop,
        },
        errorWorkflow=caught.id,
    )
    flow.post("breaks", json={})
    [failed] = flow.ended(1)
    assert failed.status == "error"
    task = board.wait(f"n8n-run:{failed.id}", "needs_review")
    assert task["payload"]["message"] == "The customer has no address."
    assert (task["payload"]["node"], task["priority"]) == ("Stop", "P1")
    assert f"/executions/{failed.id}" in task["payload"]["url"]
