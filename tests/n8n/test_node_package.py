"""The board's own nodes in a real n8n: built, checked as n8n checks them, and each used to its end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.n8n import nodes
from tests.n8n.board import TheBoard
from tests.n8n.package import NodePackage
from tests.n8n.server import OLD, Flow, Flows, N8n, wait_until
from tests.rig.board import API_KEY

CREDENTIAL = "AI Task Board"
PLAIN = {"name": "node.plain", "handler": {"use": "echo"}, "require_id": False}
OUTSIDE = {"name": "node.outside", "handler": {"use": "outside"}, "require_id": False}
ASKED = {"name": "node.asked", "handler": {"use": "none"}, "require_id": False, "review": {"grace": "0s"}}


@pytest.fixture(scope="module", autouse=True)
def credential(n8n: N8n, board: TheBoard) -> None:
    board.apply(PLAIN, OUTSIDE, ASKED)
    n8n.credential(CREDENTIAL, "aiTaskBoardApi", {"url": f"{board.url}/", "apiKey": API_KEY})


class Model:
    """A stand-in for a chat model: first it wants its one tool called, then it says that it is done."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        outer = self

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.heard.append(asked)
                message: dict[str, Any] = {"role": "assistant", "content": "Said."}
                if asked["messages"][-1]["role"] != "tool":
                    call = {"name": asked["tools"][0]["function"]["name"], "arguments": '{"input": "6 * 7"}'}
                    message = {"role": "assistant", "content": None}
                    message["tool_calls"] = [{"id": "call_1", "type": "function", "function": call}]
                reason = "tool_calls" if "tool_calls" in message else "stop"
                body = {"id": "1", "object": "chat.completion", "created": 0, "model": "a-model"}
                body |= {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}
                body |= {"usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
                raw = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    yield made
    made.close()


def board_node(name: str, resource: str, operation: str, kind: str = "aiTaskBoard", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "type": f"n8n-nodes-ai-task-board.{kind}",
        "typeVersion": 1,
        "position": [0, 0],
        "parameters": {"resource": resource, "operation": operation, **more},
        "credentials": {"aiTaskBoardApi": {"id": "", "name": CREDENTIAL}},
    }


def trigger(events: list[str], types: str, identifier: str) -> dict[str, Any]:
    node = board_node("Trigger", "", "", "aiTaskBoardTrigger") | {"webhookId": identifier}
    return node | {"parameters": {"events": events, "types": types}}


def ran(flows: Flows, path: str, *its: dict[str, Any], **body: Any) -> list[dict[str, Any]]:
    """What the last of these nodes gave."""
    flow = flows.make(nodes.webhook(path), *its)
    flow.post(path, json=body)
    [execution] = flow.ended(1)
    assert execution.status == "success", execution.error
    return execution.output(its[-1]["name"])


def test_it_passes_the_strict_lint_of_n8n(node_package: NodePackage) -> None:
    assert "problem" not in node_package.run("lint")


def test_a_task_is_created_read_and_listed(flows: Flows, board: TheBoard) -> None:
    payload = {"payload": '={{ JSON.stringify({"n": $json.body.n}) }}', "taskId": "node:{{ $json.body.n }}"}
    more = {"additionalFields": {"tags": "a, b", "title": "By a node", "priority": "P1"}, "wait": 30}
    created = board_node("Create", "task", "create", type="node.plain", **payload, **more)
    created["parameters"]["taskId"] = "=node:{{ $json.body.n }}"
    got = board_node("Get", "task", "get", taskId="={{ $json.task_id }}")
    [task] = ran(flows, "node-create", created, got, n=1)
    assert (task["task_id"], task["result"], task["tags"]) == ("node:1", {"n": 1}, ["a", "b"])
    assert (task["title"], task["priority"], task["status"]) == ("By a node", "P1", "done")
    assert task["origin"]["system"] == "n8n"
    assert task["origin"]["execution_id"]
    listed = board_node("List", "task", "getAll", limit=5, filters={"status": ["done"], "type": "node.plain"})
    assert "node:1" in [row["task_id"] for row in ran(flows, "node-list", listed)]


def test_what_the_board_refuses_is_read_in_n8n(flows: Flows) -> None:
    flow = flows.make(nodes.webhook("node-wrong"), board_node("Create", "task", "create", type="node.nothing"))
    flow.post("node-wrong", json={})
    [execution] = flow.ended(1)
    assert execution.status == "error"
    assert "There is no task type “node.nothing”" in str(execution.error)


def test_work_is_claimed_and_handed_in(flows: Flows, board: TheBoard) -> None:
    board.post("/tasks", {"type": "node.outside", "task_id": "node:work", "payload": {"n": 2}}).raise_for_status()
    claimed = board_node("Claim", "claim", "create", types="node.outside", worker="a flow", limit=1, lease=60)
    kept = board_node("Keep", "claim", "heartbeat", claimId="={{ $json.claim_id }}", lease=60)
    identifier = "={{ $('Claim').item.json.claim_id }}"
    result = '={{ JSON.stringify({"doubled": $("Claim").item.json.task.payload.n * 2}) }}'
    completed = board_node("Complete", "claim", "complete", claimId=identifier, result=result)
    ran(flows, "node-work", claimed, kept, completed)
    assert board.wait("node:work", "done")["result"] == {"doubled": 4}


def test_a_review_is_decided(flows: Flows, board: TheBoard) -> None:
    board.post("/tasks", {"type": "node.asked", "task_id": "node:review"}).raise_for_status()
    review = board.wait("node:review", "needs_review")["review"]["id"]
    read = board_node("Read", "review", "get", reviewId=review)
    decided = board_node("Decide", "review", "decide", reviewId=review, verdict="reject", reason="No.")
    decided["parameters"] |= {"version": "={{ $json.version }}", "contentHash": "={{ $json.content_hash }}"}
    ran(flows, "node-decide", read, decided)
    assert board.wait("node:review", "cancelled")["decision"]["reason"] == "No."


def test_the_running_week_is_reported(flows: Flows) -> None:
    week = "={{ $now.toFormat(\"kkkk-'W'WW\") }}"  # as the node proposes it
    [report] = ran(flows, "node-report", board_node("Report", "report", "get", week=week))
    assert report["frozen"] is False
    assert "done" in report["headline"]


def subscriptions(n8n: N8n, board: TheBoard) -> list[dict[str, Any]]:
    return [row for row in board.get("/subscriptions")["data"] if row["url"].startswith(n8n.url)]


def test_the_trigger_subscribes_checks_the_signature_and_unsubscribes(flows: Flows, n8n: N8n, board: TheBoard) -> None:
    flow = flows.make(trigger(["task.done", "task.failed"], "node.plain", "node-trigger"), nodes.end())
    [made] = wait_until(lambda: subscriptions(n8n, board), "it has subscribed")
    assert (made["events"], made["types"], made["has_secret"]) == (["task.done", "task.failed"], ["node.plain"], True)
    board.post("/tasks", {"type": "node.asked", "task_id": "node:other"}).raise_for_status()
    board.post("/tasks", {"type": "node.plain", "task_id": "node:event", "payload": {"n": 3}}).raise_for_status()
    [execution] = flow.ended(1)
    [event] = execution.output("Trigger")
    assert (event["event"], event["task"]["task_id"], event["task"]["result"]) == ("task.done", "node:event", {"n": 3})
    assert event["webhook_id"].startswith("msg_")
    forged = n8n.call("POST", made["url"].removeprefix(n8n.url), json={"event": "task.done"})
    assert forged.status_code == 401
    flow.deactivate()
    wait_until(lambda: not subscriptions(n8n, board), "it has unsubscribed")
    assert len(flow.executions()) == 1


def test_a_trigger_hears_of_what_happened_while_n8n_was_down(flows: Flows, n8n: N8n, board: TheBoard) -> None:
    flow = flows.make(trigger(["task.created"], "node.plain", "node-down"), nodes.end())
    wait_until(lambda: subscriptions(n8n, board), "it has subscribed")
    n8n.kill()
    board.post("/tasks", {"type": "node.plain", "task_id": "node:down"}).raise_for_status()
    [row] = subscriptions(n8n, board)
    wait_until(lambda: board.get(f"/subscriptions/{row['id']}")["trying"], "it is tried")
    n8n.start()
    board.post(f"/subscriptions/{row['id']}/resend").raise_for_status()
    [execution] = flow.ended(1)
    assert execution.output("Trigger")[0]["task"]["task_id"] == "node:down"


def asking(flows: Flows, path: str, **more: Any) -> Flow:
    waiting = board_node("Ask", "task", "sendAndWait", type="node.asked", message="Refund 80 EUR?\nIt is late.", **more)
    return flows.make(nodes.webhook(path), waiting | {"webhookId": f"ask-{path}"}, nodes.end())


@pytest.mark.skipif(OLD, reason="addresses are signed from n8n 2 on")
@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_send_and_wait_goes_on_with_the_decision(flows: Flows, board: TheBoard, verdict: str) -> None:
    flow = asking(flows, f"node-{verdict}", taskId=f"node:wait:{verdict}")
    flow.post(f"node-{verdict}", json={})
    flow.waiting(1)
    task = board.wait(f"node:wait:{verdict}", "needs_review")
    assert (task["title"], task["payload"]["message"]) == ("Refund 80 EUR?", "Refund 80 EUR?\nIt is late.")
    board.post(f"/tasks/{task['task_id']}/{verdict}", {"reason": "So."}).raise_for_status()
    [execution] = flow.ended(1)
    assert execution.status == "success", execution.error
    [answer] = execution.output("End")
    assert (answer["approved"], answer["timed_out"]) == (verdict == "approve", False)
    assert answer["decision"]["reason"] == "So."
    assert answer["task_id"] == task["task_id"]


@pytest.mark.skipif(OLD, reason="addresses are signed from n8n 2 on")
def test_a_task_that_ends_before_n8n_waits_is_not_missed(flows: Flows) -> None:
    waiting = board_node("Ask", "task", "sendAndWait", type="node.plain", message="At once", taskId="node:quick")
    flow = flows.make(nodes.webhook("node-quick"), waiting | {"webhookId": "ask-quick"}, nodes.end())
    for number in (1, 2):  # the second one is answered at once: it has ended
        flow.post("node-quick", json={})
        ended = flow.ended(number)
    assert [one.error for one in ended] == [{}, {}]
    assert [one.output("End")[0]["result"] for one in ended] == [{"message": "At once"}] * 2


@pytest.mark.skipif(OLD, reason="addresses are signed from n8n 2 on")
@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_a_person_stands_between_an_agent_and_its_tool(
    flows: Flows, n8n: N8n, board: TheBoard, model: Model, verdict: str
) -> None:
    """n8n makes the node that gates a tool (Human review) from Send and Wait."""
    n8n.credential("Model", "openAiApi", {"apiKey": "none", "url": f"{model.url}/v1"})
    agent = {
        "name": "Agent",
        "type": "@n8n/n8n-nodes-langchain.agent",
        "typeVersion": 3.1,
        "position": [0, 0],
        "parameters": {"promptType": "define", "text": "What is 6 times 7?", "options": {}},
    }
    chat = {
        "name": "Chat",
        "type": "@n8n/n8n-nodes-langchain.lmChatOpenAi",
        "typeVersion": 1.2,
        "position": [0, 0],
        "parameters": {
            "model": {"__rl": True, "mode": "id", "value": "a-model"},
            "options": {"baseURL": f"{model.url}/v1"},
        },
        "credentials": {"openAiApi": {"id": "", "name": "Model"}},
    }
    tool = {
        "name": "Calculator",
        "type": "@n8n/n8n-nodes-langchain.toolCalculator",
        "typeVersion": 1,
        "position": [0, 0],
        "parameters": {},
    }
    message = "=May it use {{ $tool.name }}?"
    gate = board_node("Gate", "task", "sendAndWait", "aiTaskBoardHitlTool", type="node.asked", message=message)
    gate["parameters"]["taskId"] = f"node:agent:{verdict}"
    path = f"node-agent-{verdict}"
    flow = flows.make(
        nodes.webhook(path),
        agent,
        chat,
        tool,
        gate | {"webhookId": path},
        connections={
            "Webhook": {"main": [[{"node": "Agent", "type": "main", "index": 0}]]},
            "Chat": {"ai_languageModel": [[{"node": "Agent", "type": "ai_languageModel", "index": 0}]]},
            "Calculator": {"ai_tool": [[{"node": "Gate", "type": "ai_tool", "index": 0}]]},
            "Gate": {"ai_tool": [[{"node": "Agent", "type": "ai_tool", "index": 0}]]},
        },
    )
    flow.post(path, json={})
    task = board.wait(f"node:agent:{verdict}", "needs_review")
    assert task["payload"]["message"].startswith("May it use ")
    flow.waiting(1)
    board.post(f"/tasks/{task['task_id']}/{verdict}", {"reason": "So."}).raise_for_status()
    [execution] = flow.ended(1)
    assert execution.status == "success", execution.error
    assert execution.output("Agent") == [{"output": "Said."}]
    heard = model.heard[-1]["messages"][-1]
    assert heard["role"] == "tool"
    assert ("Calculator" in execution.ran) is (verdict == "approve")
    assert ("rejected" in heard["content"]) is (verdict == "reject")


@pytest.mark.skipif(OLD, reason="addresses are signed from n8n 2 on")
def test_who_waits_for_a_task_that_another_flow_waits_for_is_told(flows: Flows, board: TheBoard) -> None:
    board.post("/tasks", {"type": "node.asked", "task_id": "node:taken"}).raise_for_status()
    flow = asking(flows, "node-taken", taskId="node:taken")
    flow.post("node-taken", json={})
    [execution] = flow.ended(1)
    assert "exists already, and its end is told to somebody else" in str(execution.error)
