"""The sample flow that waits for a decision, through crashes and deaths."""

from __future__ import annotations

import pytest

from tests.n8n.board import TheBoard
from tests.n8n.server import Flow, Flows, N8n


@pytest.fixture
def flow(flows: Flows, board: TheBoard) -> Flow:
    return flows.sample("wait-for-decision", board=board.url)


def ask(flow: Flow, board: TheBoard, id_: str) -> str:
    """Ask, and wait until a person is asked and the flow waits."""
    flow.post("board-ask", json={"id": id_, "title": "Refund 80 EUR?", "amount": 80})
    flow.waiting(1)
    board.wait(f"ask:{id_}", "needs_review")
    return f"ask:{id_}"


def test_an_approval_lets_the_flow_go_on(flow: Flow, board: TheBoard) -> None:
    task = ask(flow, board, "yes")
    board.post(f"/tasks/{task}/approve", {"reason": "it is due"}).raise_for_status()
    [execution] = flow.ended(1)
    assert execution.status == "success"
    assert execution.output("Approved")[0] | {"result": None} == {
        "task_id": task,
        "reason": "it is due",
        "result": None,
    }
    ended = board.wait(task, "done")
    [operation] = board.get(f"/tasks/{task}/operations")["data"]
    assert (operation["kind"], operation["status"]) == ("webhook.resume", "confirmed")
    assert ended["callback_url"] is not None


def test_a_rejection_takes_the_other_way(flow: Flow, board: TheBoard) -> None:
    task = ask(flow, board, "no")
    board.post(f"/tasks/{task}/reject", {"reason": "too late", "reason_class": "policy"}).raise_for_status()
    [execution] = flow.ended(1)
    assert execution.output("Rejected") == [{"task_id": task, "reason": "too late"}]
    assert "Approved" not in execution.ran
    board.wait(task, "cancelled")


def test_who_asks_the_same_again_does_not_wait_a_second_time(flow: Flow, board: TheBoard) -> None:
    task = ask(flow, board, "once")
    flow.post("board-ask", json={"id": "once", "title": "Refund 80 EUR?"})
    [second] = flow.ended(1)
    assert second.ran[-1] == "Waits elsewhere"
    board.post(f"/tasks/{task}/approve").raise_for_status()
    assert len(flow.ended(2)) == 2
    assert board.kinds(task).count("created") == 1


def test_n8n_is_killed_while_the_flow_waits_and_comes_back_after_the_decision(
    n8n: N8n, flow: Flow, board: TheBoard
) -> None:
    """The decision falls while n8n is gone; the board calls again, also while n8n says that it is just starting."""
    task = ask(flow, board, "crash")
    n8n.kill()
    board.post(f"/tasks/{task}/approve").raise_for_status()
    waiting = board.wait(task, "retrying")
    assert waiting["retry_count"] == 0
    n8n.start()
    board.post(f"/tasks/{task}/run-now")  # where it has not gone on by itself meanwhile
    [execution] = flow.ended(1)
    assert execution.output("Approved")[0]["task_id"] == task
    board.wait(task, "done")
    [operation] = board.get(f"/tasks/{task}/operations")["data"]
    assert (operation["status"], operation["tries"] > 1) == ("confirmed", True)
