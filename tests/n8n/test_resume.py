"""What a real n8n answers at the address of a flow that waits, in every state, and what the board makes of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.n8n import nodes
from tests.n8n.board import TheBoard
from tests.n8n.conftest import ELSEWHERE
from tests.n8n.server import OLD, Execution, Flow, Flows, N8n, wait_until

RESUME = "$execution.resumeUrl"
Ask = Callable[..., "Asked"]


class Asked:
    """A flow that has handed in a task and waits for it, or is about to."""

    def __init__(self, flow: Flow, board: TheBoard, task_id: str) -> None:
        self.flow, self.board, self.task_id = flow, board, task_id

    @property
    def waiting(self) -> Execution:
        [execution] = self.flow.waiting(1)
        return execution

    def approve(self) -> None:
        self.board.wait(self.task_id, "needs_review")
        self.board.post(f"/tasks/{self.task_id}/approve").raise_for_status()

    def wait(self, *statuses: str) -> dict[str, Any]:
        return self.board.wait(self.task_id, *statuses)

    @property
    def operation(self) -> dict[str, Any]:
        """The call that is to continue the flow; word of a failure may follow it to the same address."""
        found: dict[str, Any] = self.board.get(f"/tasks/{self.task_id}/operations")["data"][0]
        return found

    @property
    def address(self) -> str:
        """Where the flow waits."""
        return str(self.wait("needs_review")["callback_url"])


def submit(board: TheBoard, task_id: str, type_: str, callback: str) -> dict[str, Any]:
    """The node that hands in a task; `callback` is an expression without its braces."""
    body = f"JSON.stringify({{type: '{type_}', task_id: '{task_id}', callback_url: {callback}}})"
    return nodes.http("Hand in", "POST", f"{board.url}/api/v1/tasks", body)


@pytest.fixture
def ask(flows: Flows, board: TheBoard, request: pytest.FixtureRequest) -> Ask:
    """Start a flow that hands in a task of the type `decide` (or another one), and waits for it."""
    none = {"handler": {"use": "none"}, "review": {"when": "always", "grace": "0s"}, "retry": {"max": 0}}
    board.apply(
        {"name": "decide", "require_id": False, "action": {"use": "resume"}, **none},
        {"name": "told", "require_id": False, **none},
        {"name": "at.once", "handler": {"use": "echo"}, "action": {"use": "resume"}, "retry": {"max": 0}},
    )

    def start(
        *between: dict[str, Any], type_: str = "decide", callback: str = RESUME, wait: dict[str, Any] | None = None
    ) -> Asked:
        task_id = request.node.name.removeprefix("test_").replace("[", "-").rstrip("]")
        task = submit(board, task_id, type_, callback)
        flow = flows.make(nodes.webhook("waits"), task, *between, wait or nodes.wait(), nodes.end())
        flow.post("waits", json={})
        return Asked(flow, board, task_id)

    return start


def test_too_early_it_is_called_again_until_it_waits(ask: Ask) -> None:
    """The work is done before the flow has come to its Wait node."""
    asked = ask(nodes.pause(2), type_="at.once")
    task = asked.wait("done")
    [execution] = asked.flow.ended(1)
    assert (execution.status, execution.runs("End")) == ("success", 1)
    assert execution.output("Wait")[0]["body"]["event"] == "task.action"
    assert task["retry_count"] == 0
    assert asked.operation["status"] == "confirmed"
    early = [it for it in asked.operation["deliveries"] if it["http_status"] in (409, 500)]  # n8n 1 has both
    assert early, asked.operation["deliveries"]


def test_an_execution_that_has_ended_leaves_a_failed_task_that_says_so(ask: Ask, n8n: N8n) -> None:
    """And ten calls at once continue it once."""
    asked = ask()
    path = asked.address.removeprefix(n8n.url) if asked.waiting else ""
    with ThreadPoolExecutor(10) as pool:
        codes = [*pool.map(lambda _: n8n.call("POST", path, json={"body": "mine"}).status_code, range(10))]
    [execution] = asked.flow.ended(1)
    assert codes.count(200) == 1
    assert set(codes) <= {200, 409, 500}
    assert (execution.status, execution.runs("End")) == ("success", 1)
    asked.approve()
    task = asked.wait("failed")
    assert "has ended already" in task["last_error"]
    assert (asked.operation["status"], asked.operation["tries"]) == ("rejected", 1)


def test_an_execution_that_was_cancelled(ask: Ask, n8n: N8n) -> None:
    asked = ask()
    n8n.api("POST", f"/executions/{asked.waiting.id}/stop")
    asked.approve()
    assert "was cancelled or has failed" in asked.wait("failed")["last_error"]
    assert asked.operation["tries"] == 1


def test_an_execution_that_was_deleted(ask: Ask, n8n: N8n) -> None:
    asked = ask()
    n8n.api("DELETE", f"/executions/{asked.waiting.id}")
    asked.approve()
    task = asked.wait("failed")
    assert "deleted or pruned" in task["last_error"]
    assert asked.operation["tries"] == 1


def test_a_plain_callback_to_a_dead_address_is_a_rejected_call_and_the_task_is_done(ask: Ask, n8n: N8n) -> None:
    asked = ask(type_="told")
    n8n.api("DELETE", f"/executions/{asked.waiting.id}")
    asked.approve()
    asked.wait("done")
    wait_until(lambda: asked.operation["status"] == "rejected", "the call was given up")
    assert asked.operation["tries"] == 1
    assert "does not exist" in asked.operation["deliveries"][0]["detail"]


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        ({"httpMethod": "GET"}, "Check its method and its webhook suffix"),
        ({"suffix": "step-a"}, "Check its method and its webhook suffix"),
        ({"incomingAuthentication": "headerAuth"}, "asks for a header or password"),
    ],
    ids=["method", "suffix", "header"],
)
def test_a_wait_node_that_does_not_take_the_call(ask: Ask, wait: dict[str, Any], words: str) -> None:
    node = nodes.wait(**wait)
    if "incomingAuthentication" in wait:
        node["credentials"] = nodes.KEY
    asked = ask(wait=node)
    assert asked.waiting
    asked.approve()
    assert words in asked.wait("failed")["last_error"]
    assert asked.operation["tries"] == 1
    assert asked.waiting  # it waits on: mended by hand it can still be continued


@pytest.mark.skipif(OLD, reason="1.x signs nothing")
def test_an_address_that_was_put_together_by_hand(ask: Ask) -> None:
    asked = ask(callback=f"{RESUME}.split('?')[0]")
    assert asked.waiting
    asked.approve()
    assert "with its signature" in asked.wait("failed")["last_error"]


def test_two_waits_in_one_flow_are_told_apart_by_their_suffixes(
    flows: Flows, board: TheBoard, n8n: N8n, ask: Ask
) -> None:
    """A late repeat for the first one does not continue the second."""
    first = submit(board, "suffix-a", "decide", f"{RESUME} + '/step-a'")
    second = submit(board, "suffix-b", "decide", f"{RESUME} + '/step-b'") | {"name": "Hand in another"}
    a, b = nodes.wait("Wait A", suffix="step-a"), nodes.wait("Wait B", suffix="step-b")
    flow = flows.make(nodes.webhook("two"), first, a, second, b, nodes.end())
    flow.post("two", json={})
    flow.waiting(1)
    board.wait("suffix-a", "needs_review")
    board.post("/tasks/suffix-a/approve").raise_for_status()
    board.wait("suffix-b", "needs_review")
    flow.waiting(1)
    late = n8n.call("POST", board.task("suffix-a")["callback_url"].removeprefix(n8n.url), json={})
    assert late.status_code in (404, 409)
    board.post("/tasks/suffix-b/approve").raise_for_status()
    [execution] = flow.ended(1)
    bodies = [execution.output(name)[0]["body"]["task"]["task_id"] for name in ("Wait A", "Wait B")]
    assert bodies == ["suffix-a", "suffix-b"]
    board.wait("suffix-b", "done")


def test_an_address_that_only_n8n_understands_is_rewritten(ask: Ask, n8n: N8n) -> None:
    asked = ask(callback=f"{RESUME}.replace('{n8n.url}', '{ELSEWHERE}')")
    assert asked.address.startswith(ELSEWHERE)
    asked.approve()
    asked.wait("done")
    assert asked.flow.ended(1)[0].status == "success"


def test_an_n8n_that_is_starting_has_not_taken_the_call_whatever_it_answers(ask: Ask, n8n: N8n) -> None:
    """It says 200 in plain text, then 404 in HTML. Taken for a yes, the flow would wait for ever."""
    asked = ask()
    assert asked.waiting
    n8n.kill()
    asked.approve()
    asked.wait("retrying")
    n8n.start(wait=False)

    def pressed() -> bool:
        asked.board.post(f"/tasks/{asked.task_id}/run-now")  # as somebody who is impatient does
        return bool(asked.board.task(asked.task_id)["status"] == "done")

    wait_until(pressed, "the task is done", 120)
    n8n.wait_until_ready()
    [execution] = asked.flow.ended(1)
    assert execution.output("Wait")[0]["body"]["task"]["task_id"] == asked.task_id
    answers = {it["http_status"] for it in asked.operation["deliveries"]}
    assert asked.operation["tries"] > 1
    assert answers - {200}, "no call came before n8n was there"
