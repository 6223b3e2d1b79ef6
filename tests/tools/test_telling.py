"""add_note and report_result as an agent of Dify calls them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.api.conftest import OpenApi
from tests.tools.conftest import OUTSIDE, Agent, agent_of

CHECKED = {
    "name": "checked",
    "handler": {
        "use": "outside",
        "output_schema": {"type": "object", "required": ["label"], "properties": {"label": {"type": "string"}}},
    },
    "require_id": False,
    "review": {"when": "rules", "rules": [{"confidence_below": 0.8}]},
}


def test_a_note_stands_in_the_history_and_changes_nothing(agent: Agent) -> None:
    before = agent.api.submit("A", note="by its caller")
    body = agent.body("add_note", task_id="A", note=" The customer called again. ")
    assert (body["task_id"], body["status"]) == ("A", "pending")
    event = agent.api.events("A")[-1]
    assert (event["kind"], event["note"], event["channel"]) == ("note", "The customer called again.", "dify")
    assert event["actor"] == {"kind": "key", "name": "bootstrap"}
    after = agent.api.task("A")
    assert (after["note"], after["version"]) == ("by its caller", before["version"])


def test_the_next_agent_reads_the_last_notes(agent: Agent) -> None:
    agent.api.submit("A")
    assert "notes" not in agent.body("get_task", task_id="A")
    for number in range(7):
        agent.body("add_note", task_id="A", note=f"note {number}")
    agent.body("add_note", task_id="A", note="x" * 5000)
    notes = agent.body("get_task", task_id="A")["notes"]
    assert [it["note"] for it in notes] == ["note 3", "note 4", "note 5", "note 6", "x" * 1000]
    assert all(it["by"] == "bootstrap" and it["at"].endswith("Z") for it in notes)


def test_notes_are_for_who_may_change_the_task(agent: Agent) -> None:
    agent.api.submit("A")
    assert agent.with_key("submit", name="one")("add_note", task_id="A", note="x").status_code == 404
    refused = agent.with_key("read", name="two")("add_note", task_id="A", note="x")
    assert (refused.status_code, refused.json()["code"]) == (400, "forbidden")
    assert len(agent.api.events("A")) == 1


def test_a_note_that_is_too_long_is_refused(agent: Agent) -> None:
    agent.api.submit("A")
    refused = agent("add_note", task_id="A", note="x" * 10_001)
    assert refused.json()["message"] == "note: is longer than 10000 characters."


def test_a_waiting_task_takes_the_result_of_work_that_was_done(agent: Agent) -> None:
    agent.api.submit("A", "call")
    worker = agent.with_key("work")
    body = worker.body(
        "report_result",
        task_id="A",
        result_json='{"reached": true}',
        summary="Spoke with Li.",
        confidence="0.9",
        risks="none of note, bad line",
    )
    assert body["status"] == "done"
    assert "The result was taken." in body["message"]
    task = agent.api.task("A")
    assert task["result"] == {"reached": True}
    assert task["judgement"]["summary"] == "Spoke with Li."
    assert task["judgement"]["confidence"] == 0.9
    assert task["judgement"]["risks"] == ["none of note", "bad line"]
    assert [event["kind"] for event in agent.api.events("A")] == ["created", "started", "done"]


def test_the_same_report_again_changes_nothing_another_one_is_refused(agent: Agent) -> None:
    agent.api.submit("A", "call")
    worker = agent.with_key("work")
    worker.body("report_result", task_id="A", result_json="1")
    again = worker.body("report_result", task_id="A", result_json="1")
    assert again["repeated"] is True
    other = worker("report_result", task_id="A", result_json="2")
    assert (other.status_code, other.json()["code"]) == (409, "claim_lost")
    assert agent.api.task("A")["result"] == 1


def test_a_claim_of_this_key_is_completed(agent: Agent) -> None:
    agent.api.submit("A", "call")
    claim = agent.api.post("/claims", json={"worker": "flow", "types": ["call"]}).json()["data"][0]
    assert agent.body("report_result", task_id="A", result_json='"ok"')["status"] == "done"
    attempts = agent.api.get("/tasks/A/attempts").json()["data"]
    assert [(it["worker"], it["outcome"]) for it in attempts] == [("key:bootstrap/flow", "succeeded")]
    late = agent.api.post(f"/claims/{claim['claim_id']}/complete", json={"result": "late"})
    assert late.status_code == 409


def test_the_claim_of_another_key_is_left_alone(agent: Agent) -> None:
    agent.api.submit("A", "call")
    agent.api.post("/claims", json={"worker": "flow", "types": ["call"]})
    refused = agent.with_key("work")("report_result", task_id="A", result_json="1")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_waiting")
    assert "Another worker" in refused.json()["message"]
    assert agent.api.task("A")["status"] == "running"


def test_a_result_that_does_not_fit_is_refused_before_anything_is_claimed(agent: Agent) -> None:
    agent.api.types(CHECKED)
    agent.api.submit("A", "checked")
    refused = agent("report_result", task_id="A", result_json='{"label": 7}')
    assert (refused.status_code, refused.json()["details"][0]["field"]) == (422, "result.label")
    assert agent.api.task("A")["status"] == "pending"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [({"confidence": "0.9"}, "done"), ({"confidence": "0.5"}, "needs_review"), ({"review": "always"}, "needs_review")],
)
def test_the_rules_of_review_hold_for_reports(agent: Agent, arguments: dict[str, Any], status: str) -> None:
    agent.api.types(CHECKED)
    agent.api.submit("A", "checked")
    body = agent.body("report_result", task_id="A", result_json='{"label": "x"}', **arguments)
    assert body["status"] == status


def test_an_ended_task_takes_no_result(agent: Agent) -> None:
    agent.api.submit("A", "call")
    agent.api.post("/tasks/A/cancel")
    refused = agent("report_result", task_id="A", result_json="1")
    assert (refused.status_code, refused.json()["message"]) == (409, "This task is cancelled, so it takes no result.")


def test_a_task_that_starts_later_takes_no_result_yet(agent: Agent) -> None:
    agent.api.submit("A", "call", run_after="2030-01-01T00:00:00Z")
    assert agent("report_result", task_id="A", result_json="1").json()["code"] == "not_waiting"
    assert agent.api.task("A")["status"] == "pending"


def test_work_of_the_board_is_not_reported_from_outside(agent: Agent) -> None:
    agent.api.submit("A")
    assert agent("report_result", task_id="A", result_json="1").json()["code"] == "not_outside"
    blind = agent.with_key("work")
    assert blind("report_result", task_id="A", result_json="1").status_code == 404
    assert blind("report_result", task_id="none", result_json="1").status_code == 404


def test_reporting_needs_the_scope_work(agent: Agent) -> None:
    agent.api.submit("A", OUTSIDE["name"])
    refused = agent.with_key("submit", "read")("report_result", task_id="A", result_json="1")
    assert (refused.status_code, refused.json()["code"]) == (400, "forbidden")
    assert agent.api.task("A")["status"] == "pending"


def test_a_task_that_was_reported_is_handed_out_by_no_queue(open_api: OpenApi, redis_url: str) -> None:
    api = open_api(redis_url=redis_url)
    api.types(OUTSIDE)
    agent = agent_of(api)
    api.submit("A", "call")
    api.submit("B", "call")
    assert agent.body("report_result", task_id="A", result_json="1")["status"] == "done"
    handed_out = api.post("/claims", json={"worker": "flow", "limit": 10}).json()["data"]
    assert [it["task"]["task_id"] for it in handed_out] == ["B"]
    assert agent.body("report_result", task_id="B", result_json="2")["status"] == "done"
    assert api.post("/claims", json={"worker": "flow", "limit": 10}).json()["data"] == []


def test_two_agents_that_report_at_once_make_one_result(agent: Agent) -> None:
    agent.api.submit("A", "call")
    keys = [agent.with_key("work", name=f"agent-{number}") for number in range(4)]
    with ThreadPoolExecutor(len(keys)) as pool:
        answers = list(pool.map(lambda it: it("report_result", task_id="A", result_json=f'"{it.key[-4:]}"'), keys))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    [best] = [key for key, answer in zip(keys, answers, strict=True) if answer.status_code == 200]
    assert agent.api.task("A")["result"] == best.key[-4:]
    assert [event["kind"] for event in agent.api.events("A")] == ["created", "started", "done"]
