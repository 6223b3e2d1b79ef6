"""create_task and request_review as an agent of Dify calls them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.tools.conftest import DIRECT, Agent, agent_of

LEAD = {
    "name": "lead",
    "require_id": True,
    "handler": {"use": "echo"},
    "payload_schema": {
        "type": "object",
        "required": ["message"],
        "properties": {"message": {"type": "string"}, "phone": {"type": "string"}},
    },
}


def test_a_task_is_filed_with_all_that_was_said(agent: Agent) -> None:
    answer = agent(
        "create_task",
        type="trial",
        payload_json=json.dumps({"text": "线索 😀", "n": 1}),
        task_id="lead:7",
        title="Call back",
        priority="P1",
        tags="hot, eu",
        note="from the chat",
        due_at="2030-01-02T00:00:00Z",
        run_after="2030-01-01T08:00:00+08:00",
    )
    assert answer.status_code == 201
    assert answer.json() == {
        "task_id": "lead:7",
        "created": True,
        "status": "pending",
        "url": f"{agent.api.board.settings.public_url}/tasks/lead%3A7",
        "message": "The task was filed.",
    }
    task = agent.api.task("lead:7")
    assert task["payload"] == {"text": "线索 😀", "n": 1}
    assert (task["title"], task["priority"], task["tags"]) == ("Call back", "P1", ["hot", "eu"])
    assert (task["note"], task["source"]) == ("from the chat", "dify")
    assert (task["due_at"], task["run_after"]) == ("2030-01-02T00:00:00Z", "2030-01-01T00:00:00Z")
    [created] = agent.api.events("lead:7")
    assert (created["kind"], created["channel"]) == ("created", "dify")


def test_what_is_left_out_comes_as_empty_text_and_counts_as_absent(agent: Agent) -> None:
    body = agent.body("create_task", type="trial")
    task = agent.api.task(body["task_id"])
    assert (task["payload"], task["title"], task["priority"], task["tags"]) == ({}, "", "P2", [])
    assert (task["note"], task["due_at"], task["run_after"]) == (None, None, None)


def test_the_same_id_makes_one_task(agent: Agent) -> None:
    first = agent("create_task", type="trial", task_id="A", payload_json='{"n": 1}')
    again = agent("create_task", type="trial", task_id="A", payload_json='{"n": 1}')
    other = agent("create_task", type="trial", task_id="A", payload_json='{"n": 2}')
    assert [it.status_code for it in (first, again, other)] == [201, 200, 200]
    assert "nothing was made twice" in again.json()["message"]
    assert "another payload" in other.json()["message"]
    assert agent.api.task("A")["payload"] == {"n": 1}
    assert agent.body("find_tasks")["count"] == 1


def test_of_a_task_of_another_key_no_more_than_its_status_is_told(agent: Agent) -> None:
    agent.api.submit("A", payload={"secret": 1})
    other = agent.with_key("submit")
    body = other.body("create_task", type="trial", task_id="A")
    assert set(body) == {"task_id", "created", "status", "message"}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ({"type": "nonsense"}, "unknown_type", "Its types are: ask, call, lead, question, trial."),
        ({"type": "lead", "task_id": "L"}, "payload_invalid", "message (string, required), phone (string, optional)"),
        ({"type": "lead", "payload_json": '{"message": "x"}'}, "task_id_missing", "Send one"),
        ({"type": "trial", "task_id": "a/b"}, "bad_task_id", "task_id"),
        ({"type": "trial", "priority": "high"}, "invalid_field", "P0, P1, P2, P3"),
        ({"type": "trial", "due_at": "tomorrow"}, "invalid_field", "2026-11-30T09:00:00+08:00"),
        ({"type": "trial", "payload_json": "message"}, "invalid_field", "payload_json: is not valid JSON"),
    ],
)
def test_a_refusal_says_what_would_be_right(agent: Agent, arguments: dict[str, Any], code: str, says: str) -> None:
    agent.api.types(LEAD)
    answer = agent("create_task", **arguments)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert says in answer.json()["message"]


def test_a_question_goes_straight_to_a_person(agent: Agent) -> None:
    agent.api.submit("T-1")
    answer = agent(
        "request_review",
        question="May I refund 20 EUR to this customer?",
        details_json='{"customer": "C-1"}',
        about_task_id="T-1",
        type="question",
        task_id="refund:C-1",
        priority="P0",
    )
    assert answer.status_code == 201
    assert "get_decision" in answer.json()["message"]
    task = agent.api.task("refund:C-1")
    assert task["payload"] == {
        "customer": "C-1",
        "question": "May I refund 20 EUR to this customer?",
        "about_task_id": "T-1",
    }
    assert (task["type"], task["title"], task["priority"]) == (
        "question",
        "May I refund 20 EUR to this customer?",
        "P0",
    )


def test_the_only_type_of_questions_need_not_be_named(agent: Agent) -> None:
    assert "ask, question" in agent("request_review", question="May I?").json()["message"]
    refused = agent("request_review", question="May I?", type="trial")
    assert refused.status_code == 422
    assert "ask, question" in refused.json()["message"]


def test_where_one_type_takes_questions_it_is_taken(one_api: Any) -> None:
    # The one API of this module has only the type "ask" that goes to a person.
    body = agent_of(one_api).body("request_review", question="May I?")
    assert one_api.task(body["task_id"])["type"] == "ask"


def test_too_many_tasks_are_refused_so_that_a_model_reads_when_to_call_again(agent: Agent) -> None:
    slow = agent.with_key("submit", "read")
    agent.api.patch("/keys/other", json={"limits": {"rate": "1/min"}})
    assert slow("create_task", type="trial").status_code == 201
    refused = slow("create_task", type="trial")
    assert (refused.status_code, refused.json()["code"]) == (409, "rate_limited")
    assert "Call again in" in refused.json()["message"]
    assert slow.body("find_tasks")["count"] == 1, "nothing of the refused call is left"


def test_only_who_may_submit_files_and_asks(agent: Agent) -> None:
    reader = agent.with_key("read")
    for call in (reader("create_task", type="trial"), reader("request_review", question="May I?")):
        assert (call.status_code, call.json()["code"]) == (400, "forbidden")
        assert "scope submit or admin" in call.json()["message"]
    assert DIRECT["name"] not in reader("request_review", question="May I?").json()["message"]
