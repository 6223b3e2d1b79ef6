"""POST /tasks: made once, whatever comes, and what becomes of everything that cannot be a task."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from board.db.clock import now
from board.tasks.ledger import find
from board.tasks.models import retired_ids, task_events, tasks
from tests.api.conftest import Api

CASES = Path(__file__).parent.parent / "data/cases"
KEYS = json.loads((CASES / "web/dedup_keys.json").read_text(encoding="utf-8"))


def count(api: Api) -> int:
    with api.board.db.read() as connection:
        return connection.execute(select(func.count()).select_from(tasks)).scalar_one()


def test_a_new_task_is_201_with_the_whole_object(api: Api) -> None:
    body = {
        "type": "trial",
        "task_id": "INV-7",
        "title": "Rechnung 线索",
        "priority": "P1",
        "payload": {"n": 1, "text": "线索 😀"},
        "source": "shop",
        "origin": {"system": "n8n", "workflow_id": "w", "execution_id": "7", "url": "https://n8n.example.org/e/7"},
        "callback_url": "https://93.184.215.14/hook?secret=1",
        "run_after": "2030-01-01T08:00:00+08:00",
        "due_at": "2030-01-02T00:00:00Z",
        "max_retries": 5,
        "tags": ["a", "b"],
        "note": "by hand",
    }
    answer = api.post("/tasks", json=body)
    task = answer.json()
    assert answer.status_code == 201
    assert {name: task[name] for name in body if name not in ("run_after",)} == {
        name: body[name] for name in body if name not in ("run_after",)
    }
    assert task["run_after"] == "2030-01-01T00:00:00Z"
    due = {"code": "due", "message": "It starts at 2030-01-01T00:00:00Z.", "expected_at": "2030-01-01T00:00:00Z"}
    assert task["waiting_for"] == due
    assert (task["status"], task["phase"], task["lane"], task["round"], task["version"]) == (
        "pending",
        "work",
        "P1",
        1,
        1,
    )
    assert (task["retry_count"], task["crash_count"], task["cancel_requested"]) == (0, 0, False)
    assert "duplicate" not in task
    assert task["links"]["self"].endswith("/api/v1/tasks/INV-7")
    assert api.task("INV-7") == task
    for name in ("created_at", "updated_at", "run_after", "due_at"):
        assert datetime.fromisoformat(task[name]).tzinfo is not None
    expected = """task_id type title status phase priority lane source origin tags fields note payload result judgement
        callback_url retry_count max_retries next_retry_at last_error error_class error_cause crash_count round review
        flow_id needs assignee owner due_at deadline_at deadline_missed run_after cancel_requested created_at started_at
        finished_at updated_at version waiting_for links"""
    assert set(expected.split()) <= set(task)
    assert set(task["judgement"]) == {"summary", "advice", "verdict", "confidence", "reasons", "risks"}


def test_sent_again_it_is_the_same_task_whatever_the_new_body(api: Api) -> None:
    first = api.submit("T-1", payload={"a": 1, "b": [1, {"c": 2}]})
    same = api.post("/tasks", json={"type": "trial", "task_id": "T-1", "payload": {"b": [1, {"c": 2}], "a": 1}})
    assert same.status_code == 200
    assert same.json() == first | {"duplicate": True}
    assert len(api.events()) == 1
    other = api.post("/tasks", json={"type": "ask", "task_id": "T-1", "title": "x", "payload": {"a": 2}})
    assert other.status_code == 200
    assert other.json() == first | {"duplicate": True, "payload_differs": True}
    created, noted = api.events()
    assert (created["kind"], created["from"], created["to"], created["seq"]) == ("created", None, "pending", 1)
    assert (noted["kind"], noted["from"], noted["to"], noted["seq"]) == ("duplicate", None, None, 2)
    assert noted["actor"] == {"kind": "key", "name": "bootstrap"}
    assert count(api) == 1


def test_reject_is_409_with_the_existing_id(api: Api) -> None:
    api.submit("T-1")
    answer = api.post("/tasks", json={"type": "trial", "task_id": " T-1", "on_duplicate": "reject"})
    assert answer.status_code == 409
    assert answer.json()["code"] == "duplicate"
    assert answer.json()["details"] == [{"task_id": "T-1"}]
    assert api.post("/tasks", json={"type": "trial", "task_id": "T-2", "on_duplicate": "reject"}).status_code == 201


@pytest.mark.parametrize(("end", "acts"), [("cancelled", True), ("failed", True), ("pending", False), ("done", False)])
def test_requeue_acts_on_failed_and_cancelled_only(api: Api, end: str, acts: bool) -> None:
    """Also "what an old ID means after the task has ended" (B039)."""
    api.submit("T-1", payload={"n": 1})
    if end == "cancelled":
        api.post("/tasks/T-1/cancel")
    elif end != "pending":
        finish(api, "T-1", end)
    body = {"type": "trial", "task_id": "T-1", "payload": {"n": 2}, "on_duplicate": "requeue"}
    for turn in range(2):
        answer = api.post("/tasks", json=body)
        assert answer.status_code == 200
        task = answer.json()
        assert (task["duplicate"], task["payload_differs"]) == (True, True)
        assert task["payload"] == {"n": 1}, "the stored payload stays"
        assert task["status"] == ("pending" if acts else end)
        assert [event["kind"] for event in api.events()].count("requeued") == (1 if acts else 0), turn


@pytest.mark.parametrize("end", ["done", "failed", "cancelled"])
def test_an_old_id_is_answered_with_its_task(api: Api, end: str) -> None:
    api.submit("T-1", payload={"n": 1})
    if end == "cancelled":
        api.post("/tasks/T-1/cancel")
    else:
        finish(api, "T-1", end)
    answer = api.post("/tasks", json={"type": "trial", "task_id": "T-1", "payload": {"n": 2}})
    assert answer.status_code == 200
    assert answer.json()["status"] == end
    assert answer.json()["payload_differs"] is True
    assert api.task()["payload"] == {"n": 1}


def finish(api: Api, task_id: str, end: str) -> None:
    """Take the task and end it, as a worker does."""
    from board.tasks.ledger import Lease
    from board.tasks.states import Move
    from tests.heart import WORKER, claim_lane

    with api.board.db.write() as tx:
        (row,) = claim_lane(tx, api.board.ledger, lane=2, limit=1, worker="w1", lease=60)
        move = {"done": Move.SUCCEED, "failed": Move.FAIL}[end]
        assert api.board.ledger.settle(tx, Lease(row["id"], row["lease_token"]), move, WORKER) is not None


def test_an_archived_id_stays_taken(api: Api) -> None:
    with api.board.db.write() as tx:
        tx.execute(insert(retired_ids).values(task_id="OLD-1", status="done", retired_at=now()))
    for more in ({}, {"on_duplicate": "requeue"}):
        answer = api.post("/tasks?wait=1", json={"type": "trial", "task_id": "OLD-1 ", **more})
        assert answer.status_code == 200
        assert answer.json() == {"task_id": "OLD-1", "status": "done", "archived": True, "duplicate": True}
    answer = api.post("/tasks", json={"type": "trial", "task_id": "OLD-1", "on_duplicate": "reject"})
    assert answer.status_code == 409
    assert count(api) == 0


# -- IDs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "two"), KEYS["one_task_or_422"])
def test_ids_that_look_the_same_are_one_task(api: Api, one: str, two: str) -> None:
    """B003."""
    assert api.submit(one)["task_id"] == one
    answer = api.post("/tasks", json={"type": "trial", "task_id": two})
    assert answer.status_code == 200
    assert answer.json()["task_id"] == one
    assert count(api) == 1


@pytest.mark.parametrize(("one", "two"), KEYS["two_tasks"])
def test_ids_that_differ_are_two_tasks(api: Api, one: str, two: str) -> None:
    api.submit(one)
    api.submit(two)
    assert count(api) == 2


@pytest.mark.parametrize(
    "bad", [*KEYS["always_422"], "a\u200bb", "a/b", "..", "x" * 201, "a\x1cb", "\u202eabc", 7, True, []]
)
def test_ids_that_are_never_taken(one_api: Api, bad: Any) -> None:
    before = count(one_api)
    answer = one_api.post("/tasks", json={"type": "trial", "task_id": bad})
    assert answer.status_code == 422
    assert answer.json()["details"][0]["field"] == "task_id"
    assert count(one_api) == before


def test_a_control_character_is_named(one_api: Api) -> None:
    assert "U+0007" in one_api.post("/tasks", json={"type": "trial", "task_id": "a\u0007b"}).json()["message"]


def test_the_idempotency_key_is_the_id_where_there_is_no_other(api: Api) -> None:
    header = {"Idempotency-Key": "call  7"}
    assert api.post("/tasks", json={"type": "trial"}, headers=header).json()["task_id"] == "call 7"
    again = api.post("/tasks", json={"type": "trial", "Idempotency-Key": "call 7"})
    assert (again.status_code, again.json()["task_id"]) == (200, "call 7")
    named = api.post("/tasks", json={"type": "trial", "task_id": "T-1"}, headers=header)
    assert (named.status_code, named.json()["task_id"]) == (201, "T-1")
    utf8 = {"Idempotency-Key": "线索-1".encode()}
    assert api.post("/tasks", json={"type": "trial"}, headers=utf8).json()["task_id"] == "线索-1"
    bad = api.post("/tasks", json={"type": "trial"}, headers={"Idempotency-Key": "a/b"})
    assert bad.status_code == 422
    assert bad.json()["details"][0]["field"] == "Idempotency-Key"


def test_without_any_id_each_call_makes_a_task(api: Api) -> None:
    one, two = (api.post("/tasks", json={"type": "trial"}) for _ in range(2))
    assert (one.status_code, two.status_code) == (201, 201)
    assert one.json()["task_id"] != two.json()["task_id"]


LEAD = {
    "name": "lead",
    "handler": {"use": "echo"},
    "task_id": "{{ source }}:{{ payload.external_id }}:{{ payload.phone|phone }}",
}


def test_a_template_makes_the_id_and_misses_nothing(api: Api) -> None:
    api.types(LEAD)
    body = {"type": "lead", "source": "web", "payload": {"external_id": 17, "phone": "0044 7700 900-123"}}
    made = api.post("/tasks", json=body, headers={"Idempotency-Key": "other"})
    assert (made.status_code, made.json()["task_id"]) == (201, "web:17:+447700900123")
    body["payload"] = {"external_id": 17, "phone": "+44 (7700) 900123"}
    assert api.post("/tasks", json=body).json()["task_id"] == "web:17:+447700900123"
    assert api.post("/tasks", json=body | {"task_id": "own"}).json()["task_id"] == "own"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"source": None}, "source"),
        ({"source": "  "}, "source"),
        ({"payload": {"external_id": 1}}, "payload.phone"),
        ({"payload": {"external_id": 1, "phone": None}}, "payload.phone"),
        ({"payload": {"external_id": 1, "phone": "none"}}, "payload.phone"),
        ({"payload": {"external_id": "", "phone": "1"}}, "payload.external_id"),
        ({"payload": {}}, "payload.external_id"),
    ],
)
def test_a_template_that_misses_a_value_names_it(one_api: Api, change: dict[str, Any], named: str) -> None:
    before = count(one_api)
    one_api.types(LEAD)
    body = {"type": "lead", "source": "web", "payload": {"external_id": 17, "phone": "1"}}
    answer = one_api.post("/tasks", json=body | change)
    assert answer.status_code == 422
    assert answer.json()["code"] == "task_id_incomplete"
    assert named in answer.json()["message"]
    assert count(one_api) == before


def test_types_that_act_outside_need_an_id(api: Api) -> None:
    hook = {"name": "hook", "kind": "webhook", "url": "https://n8n.example.org/webhook/x"}
    action = {"use": "webhook", "connection": "hook"}
    api.types(
        {"name": "acts", "handler": {"use": "echo"}, "action": action},
        {"name": "acts-freely", "handler": {"use": "echo"}, "action": action, "require_id": False},
        {"name": "effects", "handler": {"use": "echo", "side_effects": True}},
        {"name": "strict", "handler": {"use": "echo"}, "require_id": True},
        connections=[hook],
    )
    for name in ("acts", "effects", "strict"):
        answer = api.post("/tasks", json={"type": name})
        assert (answer.status_code, answer.json()["code"]) == (422, "task_id_missing"), name
        assert answer.json()["details"][0]["field"] == "task_id"
        assert api.post("/tasks", json={"type": name}, headers={"Idempotency-Key": f"k-{name}"}).status_code == 201
    assert api.post("/tasks", json={"type": "acts-freely"}).status_code == 201


# -- priority -----------------------------------------------------------------------------------------------------

RULED = {
    "name": "ruled",
    "handler": {"use": "echo"},
    "priority": [{"when": "payload.amount > 1000", "use": "P0"}, {"use": "P3"}],
    "task_id": "{{ priority }}:{{ payload.n }}",
}


def test_a_type_works_out_the_priority_unless_the_body_has_one(api: Api) -> None:
    api.types(RULED, {"name": "told", "handler": {"use": "echo"}, "priority": "{{ payload.p }}"})
    big = api.post("/tasks", json={"type": "ruled", "payload": {"amount": 1500, "n": 1}}).json()
    assert (big["task_id"], big["priority"], big["lane"]) == ("P0:1", "P0", "P0"), "the ID sees the priority worked out"
    own = api.post("/tasks", json={"type": "ruled", "priority": "P1", "payload": {"amount": 1500, "n": 1}}).json()
    assert (own["task_id"], own["priority"]) == ("P1:1", "P1")
    small = api.post("/tasks", json={"type": "ruled", "payload": {"n": 1}}).json()
    assert (small["task_id"], small["priority"]) == ("P3:1", "P3")
    assert api.post("/tasks", json={"type": "told", "payload": {"p": "P1"}}).json()["priority"] == "P1"


def test_a_priority_that_is_none_is_refused_with_what_came_out(api: Api) -> None:
    api.types(RULED, {"name": "told", "handler": {"use": "echo"}, "priority": "{{ payload.p }}"})
    answer = api.post("/tasks", json={"type": "told", "task_id": "T-1", "payload": {"p": "high"}})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_priority")
    assert answer.json()["details"][0]["field"] == "priority"
    assert "“high”" in answer.json()["message"]
    bodies = [{"type": "told", "payload": {"p": p}} for p in ("P0", "high")]
    items = api.post("/tasks/bulk", json={"tasks": bodies}).json()["data"]
    assert [(it["status"], it.get("code")) for it in items] == [("created", None), ("error", "bad_priority")]
    assert api.post("/tasks", json={"type": "ruled", "payload": {"amount": "9", "n": 1}}).status_code == 422
    assert count(api) == 1


# -- whose tasks --------------------------------------------------------------------------------------------------


def test_a_submit_key_learns_of_a_strangers_task_only_that_it_exists(api: Api) -> None:
    api.submit("T-1", payload={"secret": 1})
    api.post("/tasks/T-1/cancel")
    key = api.as_key("submit")
    body = {"type": "trial", "task_id": "T-1", "payload": {"n": 1}, "on_duplicate": "requeue"}
    answer = key.post("/tasks?wait=1", json=body)
    assert answer.status_code == 200
    assert answer.json() == {"task_id": "T-1", "status": "cancelled", "duplicate": True, "payload_differs": True}
    assert key.get("/tasks/T-1").status_code == 404
    (item,) = key.post("/tasks/bulk", json={"tasks": [body]}).json()["data"]
    assert item["status"] == "duplicate"
    assert api.task()["status"] == "cancelled", "and may not requeue it"


def test_who_put_it_in_is_written_down(api: Api) -> None:
    api.as_key("submit", name="shop").submit("T-1")
    with api.board.db.read() as connection:
        row = find(connection, "T-1")
        assert row is not None
        event = connection.execute(select(task_events).where(task_events.c.task == row["id"])).mappings().one()
    assert row["requester"] == "key:shop"
    assert (event["actor_kind"], event["actor_name"], event["channel"]) == ("key", "shop", "api")
