"""get_task, find_tasks and get_decision as an agent of Dify calls them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.api.conftest import OpenApi
from tests.tools.conftest import DIRECT, Agent, agent_of


@pytest.fixture
def working(open_api: OpenApi) -> Agent:
    """An agent on a board that works."""
    api = open_api(work=True)
    api.types(DIRECT, {"name": "slow", "handler": {"use": "none"}, "require_id": False, "review": {"grace": "60s"}})
    return agent_of(api)


def open_review(agent: Agent, task_id: str) -> dict[str, Any]:
    review: dict[str, Any] = agent.api.task(task_id)["review"]
    return review


def decide(agent: Agent, task_id: str, **verdict: Any) -> None:
    review = open_review(agent, task_id)
    shown = {"version": review["version"], "content_hash": review["content_hash"]}
    answer = agent.api.post(f"/reviews/{review['id']}/decision", json=shown | verdict)
    assert answer.status_code == 200, answer.text


def test_a_result_is_waited_for(working: Agent) -> None:
    working.body("create_task", type="trial", task_id="A", payload_json='{"n": 1}', title="One")
    task = working.body("get_task", task_id="A", wait_seconds="30")
    assert task.pop("finished_at")
    assert task.pop("created_at")
    assert task == {
        "task_id": "A",
        "type": "trial",
        "title": "One",
        "status": "done",
        "priority": "P2",
        "url": f"{working.api.board.settings.public_url}/tasks/A",
        "result": {"n": 1},
        "message": "It is finished; nothing is left to do.",
    }


def test_who_waits_in_vain_gets_the_state_so_far(agent: Agent) -> None:
    agent.api.submit("A")
    task = agent.body("get_task", task_id="A", wait_seconds="0.2")
    assert task["status"] == "pending"
    assert "waiting_for" in task
    assert "get_task again" in task["message"]


def test_a_long_result_is_not_poured_over_a_model(working: Agent) -> None:
    working.api.submit("A", payload={"text": "x" * 30_000})
    task = working.body("get_task", task_id="A", wait_seconds="30")
    assert "Too long" in task["result"]
    assert len(str(task)) < 2000


def test_an_unknown_task_is_404_with_a_sentence(agent: Agent) -> None:
    for tool in ("get_task", "get_decision"):
        answer = agent(tool, task_id="no/such")
        assert (answer.status_code, answer.json()["message"]) == (404, "There is no task “no/such”.")


def test_tasks_are_found_by_every_filter(agent: Agent) -> None:
    agent.api.submit("A", title="Refund for Li", priority="P0", tags=["hot"])
    agent.api.submit("B", title="Refund for Wang")
    agent.api.submit("C", type="ask", title="Other")
    agent.api.post("/tasks/B/cancel")

    def found(**filters: str) -> list[str]:
        return sorted(task["task_id"] for task in agent.body("find_tasks", **filters)["tasks"])

    assert found() == ["A", "B", "C"]
    assert found(query="refund") == ["A", "B"]
    assert found(status="pending") == ["A", "C"]
    assert found(status="pending,cancelled", query="Refund") == ["A", "B"]
    assert found(type="ask") == ["C"]
    assert found(priority="p0") == ["A"]
    assert found(tag="hot, cold") == ["A"]
    assert agent.body("find_tasks", query="nothing") == {
        "tasks": [],
        "count": 0,
        "more": False,
        "message": "No task fits.",
    }
    two = agent.body("find_tasks", limit="2")
    assert ([task["task_id"] for task in two["tasks"]], two["more"]) == (["C", "B"], True)


@pytest.mark.parametrize("limit", ["0", "26", "2.5", "-1"])
def test_a_limit_out_of_range_is_refused(agent: Agent, limit: str) -> None:
    answer = agent("find_tasks", limit=limit)
    assert (answer.status_code, answer.json()["message"]) == (422, "limit: must be a whole number from 1 to 25.")


def test_no_body_at_all_finds_the_newest(agent: Agent) -> None:
    agent.api.submit("A")
    assert agent.post("find_tasks").json()["count"] == 1


def test_a_submit_key_sees_its_own_only(agent: Agent) -> None:
    agent.api.submit("A")
    other = agent.with_key("submit")
    other.body("create_task", type="trial", task_id="B")
    assert [task["task_id"] for task in other.body("find_tasks")["tasks"]] == ["B"]
    assert other("get_task", task_id="A").status_code == 404
    assert other("get_decision", task_id="A").status_code == 404
    assert other("get_task", task_id="B").status_code == 200


@pytest.mark.parametrize(
    ("verdict", "means"),
    [
        ({"verdict": "approve"}, "you may go on"),
        ({"verdict": "reject", "reason": "too dear", "reason_class": "policy"}, "do not do it"),
    ],
)
def test_a_decision_is_waited_for(working: Agent, verdict: dict[str, Any], means: str) -> None:
    working.body("request_review", question="May I?", type="question", task_id="Q")
    before = working.body("get_decision", task_id="Q")
    assert before["decided"] is False
    assert "verdict" not in before
    assert working.body("get_task", task_id="Q", wait_seconds="30")["status"] == "needs_review"
    assert working.body("get_decision", task_id="Q")["asked_because"] == "direct"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(working.body, "get_decision", task_id="Q", wait_seconds="50")
        decide(working, "Q", **verdict)
        told = waiting.result()
    assert told["decided"] is True
    assert {name: told[name] for name in verdict} == verdict
    assert (told["by"], means in told["message"]) == ("key:bootstrap", True)


def test_a_decision_that_may_still_be_taken_back_allows_nothing(working: Agent) -> None:
    working.body("request_review", question="May I?", type="slow", task_id="Q")
    working.body("get_task", task_id="Q", wait_seconds="30")
    decide(working, "Q", verdict="approve")
    told = working.body("get_decision", task_id="Q")
    assert told["decided"] is False
    assert told["final_at"]
    assert "verdict" not in told


def test_nobody_was_asked(agent: Agent) -> None:
    agent.api.submit("A")
    told = agent.body("get_decision", task_id="A")
    assert told["decided"] is False
    assert told["message"].startswith("No person was asked")


def test_a_question_that_was_withdrawn_is_not_decided(working: Agent) -> None:
    working.body("request_review", question="May I?", type="question", task_id="Q")
    working.body("get_task", task_id="Q", wait_seconds="30")
    working.api.post("/tasks/Q/cancel")
    told = working.body("get_decision", task_id="Q", wait_seconds="30")
    assert told["decided"] is False
    assert "closed without a decision" in told["message"]


def test_who_waits_is_answered_when_the_board_goes_down(agent: Agent) -> None:
    agent.api.submit("A")
    signals = agent.api.board.signals
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(agent.body, "get_task", task_id="A", wait_seconds="50")
        end = time.monotonic() + 30
        while not len(signals.callers) and time.monotonic() < end:
            time.sleep(0.01)  # nothing tells that somebody has begun to wait
        agent.api.board.stopping.set()
        signals.callers.ring()
        assert waiting.result(30)["status"] == "pending"
