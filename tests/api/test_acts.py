"""Editing, cancelling, requeueing: what may be done where a task stands, and what twice the same call does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from board.tasks.ledger import Lease, find
from board.tasks.states import Move
from tests.api.conftest import Api
from tests.heart import WORKER, claim_lane

STATUSES = ["pending", "running", "retrying", "needs_review", "done", "failed", "cancelled"]


def bring_to(api: Api, status: str, task_id: str = "T-1") -> dict[str, Any]:
    """A new task, moved where it is wanted as a worker would move it."""
    api.submit(task_id, payload={"n": 1})
    if status == "cancelled":
        api.post(f"/tasks/{task_id}/cancel")
    elif status != "pending":
        with api.board.db.write() as tx:
            (row,) = claim_lane(tx, api.board.ledger, lane=2, limit=1, worker="w1", lease=60)
            assert row["task_id"] == task_id
            lease = Lease(row["id"], row["lease_token"])
            ends: dict[str, tuple[Move, Any]] = {
                "done": (Move.SUCCEED, None),
                "failed": (Move.FAIL, None),
                "retrying": (Move.RETRY, None),
                "needs_review": (Move.ASK, {"reason": "policy"}),
            }
            if status in ends:
                move, details = ends[status]
                changes = {"retry_count": 1} if status == "retrying" else {}
                assert api.board.ledger.settle(tx, lease, move, WORKER, changes=changes, details=details)
    task = api.task(task_id)
    assert task["status"] == status
    return task


# -- PATCH ----------------------------------------------------------------------------------------------------------


def test_an_edit_changes_what_is_given_and_writes_the_difference(api: Api) -> None:
    api.submit("T-1", title="old", tags=["a"], note="n", priority="P2")
    edit = {
        "version": 1,
        "title": "new",
        "priority": "P0",
        "tags": ["b", "c"],
        "due_at": "2030-01-02T08:00:00+08:00",
        "assignee": "li@example.org",
        "run_after": "2031-01-01T00:00:00Z",
        "payload": {"n": 653247040368672768},
    }
    answer = api.patch("/tasks/T-1", json=edit)
    task = answer.json()
    assert answer.status_code == 200
    assert (task["title"], task["priority"], task["lane"], task["tags"]) == ("new", "P0", "P0", ["b", "c"])
    assert (task["due_at"], task["assignee"]) == ("2030-01-02T00:00:00Z", "li@example.org")
    assert (task["note"], task["payload"], task["version"]) == ("n", {"n": 653247040368672768}, 2)
    assert task["waiting_for"]["code"] == "due"
    event = api.events()[-1]
    assert (event["kind"], event["from"], event["to"]) == ("edited", None, None)
    assert event["data"] == {
        "title": {"from": "old", "to": "new"},
        "priority": {"from": "P2", "to": "P0"},
        "tags": {"from": ["a"], "to": ["b", "c"]},
        "due_at": {"from": None, "to": "2030-01-02T00:00:00Z"},
        "assignee": {"from": None, "to": "li@example.org"},
        "run_after": {"from": None, "to": "2031-01-01T00:00:00Z"},
        "payload": {"from": {}, "to": {"n": 653247040368672768}},
    }
    cleared = api.patch("/tasks/T-1", json={"version": 2, "assignee": None, "due_at": None, "run_after": None})
    assert (cleared.json()["assignee"], cleared.json()["due_at"], cleared.json()["run_after"]) == (None, None, None)
    assert cleared.json()["waiting_for"]["code"] == "no_worker"


def test_an_edit_that_changes_nothing_is_no_edit(api: Api) -> None:
    task = api.submit("T-1", title="same", tags=["a"], due_at="2030-01-02T00:00:00Z")
    same = {"version": 1, "title": "same", "tags": ["a"], "due_at": "2030-01-02T01:00:00+01:00", "priority": "P2"}
    assert api.patch("/tasks/T-1", json=same).json() == task
    assert len(api.events()) == 1


@pytest.mark.parametrize("version", [0, 2, -1, 10**30])
def test_a_stale_edit_is_409_and_changes_nothing(api: Api, version: int) -> None:
    task = api.submit("T-1")
    answer = api.patch("/tasks/T-1", json={"version": version, "title": "new"})
    assert (answer.status_code, answer.json()["code"]) == (409, "stale_version")
    assert api.task() == task


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        ({"title": "x"}, "version"),
        ({"version": None, "title": "x"}, "version"),
        ({"version": 1, "status": "done"}, "status"),
        ({"version": 1, "task_id": "T-2"}, "task_id"),
        ({"version": 1, "priority": None}, "priority"),
        ({"version": 1, "priority": "P7"}, "priority"),
        ({"version": 1, "payload": None}, "payload"),
        ({"version": 1, "payload": [1]}, "payload"),
        ({"version": 1, "fields": {"region": "EU"}}, "fields"),
        ({"version": 1, "due_at": "2030-01-01"}, "due_at"),
        ({"version": 1, "run_after": 5}, "run_after"),
        ({"version": 1, "tags": ["", "x"]}, "tags.0"),
        ({"version": 1, "title": "a\0"}, "title"),
        ({"version": 1, "assignee": "x" * 201}, "assignee"),
    ],
)
def test_an_edit_that_does_not_fit_names_its_field(one_api: Api, edit: dict[str, Any], field: str) -> None:
    task = one_api.submit("T-1")
    answer = one_api.patch("/tasks/T-1", json=edit)
    assert answer.status_code == 422
    assert answer.json()["details"][0]["field"] == field
    assert one_api.task()["version"] == task["version"]


def test_the_payload_is_open_only_where_somebody_may_still_act_on_it(api: Api) -> None:
    for status in STATUSES:
        task = bring_to(api, status, f"T-{status}")
        answer = api.patch(f"/tasks/T-{status}", json={"version": task["version"], "payload": {"n": 2}})
        if status in ("pending", "needs_review", "failed"):
            assert answer.status_code == 200, status
            assert answer.json()["payload"] == {"n": 2}
        else:
            assert answer.status_code == 422, status
            assert answer.json()["details"][0]["field"] == "payload"
            assert api.task(f"T-{status}") == task
        title = api.patch(f"/tasks/T-{status}", json={"version": api.task(f"T-{status}")["version"], "title": "seen"})
        assert title.status_code == 200, status
        if status in ("pending", "retrying"):
            api.post(f"/tasks/T-{status}/cancel")  # so that the next status claims its own task


def test_a_payload_is_checked_when_it_is_edited(api: Api) -> None:
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    api.types({"name": "strict", "handler": {"use": "echo"}, "payload_schema": schema})
    api.submit("T-1", "strict", payload={"n": 1})
    answer = api.patch("/tasks/T-1", json={"version": 1, "payload": {"n": "two"}})
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, "payload.n")
    assert api.task()["payload"] == {"n": 1}


def test_a_correction_changes_what_the_reviewer_must_have_seen(api: Api) -> None:
    review = bring_to(api, "needs_review")["review"]
    version = api.task()["version"]
    after = api.patch("/tasks/T-1", json={"version": version, "payload": {"n": 2}}).json()["review"]
    assert after["version"] == review["version"] + 1
    assert after["content_hash"] != review["content_hash"]
    stale = {"verdict": "approve", "version": review["version"], "content_hash": review["content_hash"]}
    answer = api.post(f"/reviews/{review['id']}/decision", json=stale)
    assert (answer.status_code, answer.json()["code"]) == (409, "review_changed")


# -- cancel, requeue, run-now ---------------------------------------------------------------------------------------

# what each act makes of a task; None: 409
TABLE: dict[str, dict[str, str | None]] = {
    "cancel": {
        "pending": "cancelled",
        "running": "running",
        "retrying": "cancelled",
        "needs_review": "cancelled",
        "done": None,
        "failed": None,
        "cancelled": None,
    },
    "requeue": dict.fromkeys(STATUSES, None) | {"failed": "pending", "cancelled": "pending"},
    "run-now": dict.fromkeys(STATUSES, None) | {"retrying": "pending"},
}


@pytest.mark.parametrize("act", list(TABLE))
def test_what_each_act_does_in_each_status(api: Api, act: str) -> None:
    for status in STATUSES:
        before = bring_to(api, status, f"T-{status}")
        answer = api.post(f"/tasks/T-{status}/{act}", json={"reason": "because"})
        after = api.task(f"T-{status}")
        expected = TABLE[act][status]
        if expected is None:
            assert (answer.status_code, answer.json()["code"]) == (409, "illegal_state"), status
            assert answer.json()["details"] == [{"status": status, "phase": "work"}]
            assert status in answer.json()["message"]
            assert after == before
        else:
            assert answer.status_code == 200, status
            assert answer.json() == after
            assert after["status"] == expected
            assert api.events(f"T-{status}")[-1]["note"] == "because"
        if after["status"] in ("pending", "retrying"):  # so that the next status claims its own task
            api.post(f"/tasks/T-{status}/cancel")


def test_a_running_task_is_asked_to_stop_and_its_late_result_is_refused(api: Api) -> None:
    bring_to(api, "running")
    for _ in range(2):
        task = api.post("/tasks/T-1/cancel").json()
        assert (task["status"], task["cancel_requested"]) == ("running", True)
    assert [event["kind"] for event in api.events()].count("cancel_requested") == 1
    with api.board.db.write() as tx:
        row = find(tx, "T-1")
        assert row is not None
        lease = Lease(row["id"], row["lease_token"])
        assert api.board.ledger.settle(tx, lease, Move.SUCCEED, WORKER) is None
        assert api.board.ledger.settle(tx, lease, Move.STOP, WORKER, changes={"cancel_requested": False})
    task = api.task()
    assert (task["status"], task["cancel_requested"], task["result"]) == ("cancelled", False, None)
    again = api.post("/tasks/T-1/requeue").json()
    assert (again["status"], again["cancel_requested"]) == ("pending", False)


def test_a_requeue_gives_a_fresh_budget_and_the_current_type(api: Api) -> None:
    bring_to(api, "retrying")
    api.post("/tasks/T-1/cancel")
    api.types({"name": "trial", "handler": {"use": "echo"}, "title": "second version"})
    original = api.post("/tasks/T-1/requeue", json={"type_version": "original"}).json()
    assert (original["status"], original["retry_count"], original["type_version"]) == ("pending", 0, 1)
    api.post("/tasks/T-1/cancel")
    current = api.post("/tasks/T-1/requeue", json={"from": "work", "type_version": "current"}).json()
    assert (current["type_version"], current["finished_at"], current["phase"]) == (2, None, "work")


@pytest.mark.parametrize(
    ("act", "body", "field"),
    [
        ("cancel", {"why": "x"}, "why"),
        ("cancel", {"reason": 5}, "reason"),
        ("requeue", {"from": "act"}, "from"),
        ("requeue", {"type_version": "newest"}, "type_version"),
        ("run-now", {"reason": "x" * 2001}, "reason"),
    ],
)
def test_an_act_with_a_bad_body_does_nothing(one_api: Api, act: str, body: dict[str, Any], field: str) -> None:
    one_api.submit("T-1")
    answer = one_api.post(f"/tasks/T-1/{act}", json=body)
    assert answer.status_code == 422
    assert answer.json()["details"][0]["field"] == field
    assert one_api.task()["status"] == "pending"


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b'{"reason": null}'])
def test_an_act_needs_no_body(one_api: Api, body: bytes) -> None:
    name = f"T-{len(body)}"
    one_api.submit(name)
    assert one_api.post(f"/tasks/{name}/cancel", content=body).json()["status"] == "cancelled"


def test_what_was_approved_without_an_action_is_done_after_a_requeue(open_api: Any) -> None:
    """Cancelled in its grace time and put back, there is nothing left to do: no worker may stumble over it."""
    from board.upkeep.sweep import finish_grace

    api = open_api()
    bring_to(api, "needs_review")
    assert api.post("/tasks/T-1/approve").json()["phase"] == "act"
    api.post("/tasks/T-1/cancel")
    assert api.post("/tasks/T-1/requeue").json()["status"] == "pending"
    with api.board.db.write() as tx:
        assert claim_lane(tx, api.board.ledger, lane=2, limit=5, worker="w1", lease=60) == []
    assert finish_grace(api.board.db, api.board.ledger) == 1
    assert api.task()["status"] == "done"


# -- acknowledging, and what is archived ------------------------------------------------------------------------------


def test_a_failure_is_acknowledged_once_with_a_reason(api: Api) -> None:
    version = bring_to(api, "failed")["version"]
    for _ in range(2):
        task = api.post("/tasks/T-1/acknowledge", json={"reason": "Known."}).json()
        assert (task["status"], task["version"]) == ("failed", version + 1)
        assert task["acknowledged_at"] is not None
    (event,) = [event for event in api.events() if event["kind"] == "acknowledged"]
    assert (event["note"], event["from"], event["to"], event["actor"]["name"]) == ("Known.", None, None, "bootstrap")
    assert api.post("/tasks/T-1/requeue").json()["acknowledged_at"] is None


@pytest.mark.parametrize("status", [status for status in STATUSES if status != "failed"])
def test_what_has_not_failed_is_not_acknowledged(api: Api, status: str) -> None:
    bring_to(api, status)
    answer = api.post("/tasks/T-1/acknowledge")
    assert (answer.status_code, answer.json()["code"]) == (409, "illegal_state")
    assert answer.json()["details"] == [{"status": status, "phase": "work"}]


def test_a_task_that_was_archived_is_gone_and_its_id_says_where_it_is(api: Api, at: Any) -> None:
    """B039: the answer always says what happened."""
    bring_to(api, "done")
    at(31 * 86_400)
    assert api.board.archive.run().archived.total() == 1
    day = datetime.now(UTC) + timedelta(days=31)
    for method, path in [("GET", ""), ("GET", "/events"), ("POST", "/cancel"), ("PATCH", "")]:
        answer = api.request(method, f"/tasks/T-1{path}", **({"json": {"version": 1}} if method == "PATCH" else {}))
        assert (answer.status_code, answer.json()["code"]) == (410, "archived"), path
        assert f"archive/{day:%Y-%m-%d}.jsonl.gz" in answer.json()["message"]
        assert answer.json()["details"] == [{"status": "done", "day": f"{day:%Y-%m-%d}"}]
    assert api.get("/tasks?task_id=T-1").json()["data"] == []
    expected = {"task_id": "T-1", "status": "done", "archived": True, "duplicate": True}
    for more in ({}, {"payload": {"n": 2}}, {"on_duplicate": "requeue"}):
        answer = api.post("/tasks?wait=1", json={"type": "trial", "task_id": "T-1", **more})
        assert (answer.status_code, answer.json()) == (200, expected)
    assert api.post("/tasks", json={"type": "trial", "task_id": "T-1", "on_duplicate": "reject"}).status_code == 409
    bulk = api.post("/tasks/bulk", json={"tasks": [{"type": "trial", "task_id": id_} for id_ in ("T-1", "T-2", "T-1")]})
    assert [(item["status"], item.get("archived")) for item in bulk.json()["data"]] == [
        ("duplicate", True),
        ("created", None),
        ("duplicate", True),
    ]
    assert api.as_key("submit", name="shop").get("/tasks/T-1").status_code == 410
    assert api.as_key("work", name="worker").get("/tasks/T-1").status_code == 404


# -- twice the same (B005) ------------------------------------------------------------------------------------------


def at_once(calls: int, call: Callable[[], httpx2.Response]) -> list[httpx2.Response]:
    start = threading.Barrier(calls)

    def one(_: int) -> httpx2.Response:
        start.wait()
        return call()

    with ThreadPoolExecutor(calls) as threads:
        return list(threads.map(one, range(calls)))


@pytest.mark.parametrize("calls", [2, 8])
def test_a_failed_task_is_requeued_once(api: Api, calls: int) -> None:
    bring_to(api, "failed")
    answers = at_once(calls, lambda: api.post("/tasks/T-1/requeue"))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * (calls - 1)
    refused = [answer.json() for answer in answers if answer.status_code == 409]
    assert {body["details"][0]["status"] for body in refused} == {"pending"}
    assert [event["kind"] for event in api.events()].count("requeued") == 1
    assert api.post("/tasks/T-1/requeue").status_code == 409


@pytest.mark.parametrize("calls", [2, 8])
def test_the_same_revision_counts_once(api: Api, calls: int) -> None:
    review = bring_to(api, "needs_review")["review"]
    body = {
        "verdict": "revise",
        "version": review["version"],
        "content_hash": review["content_hash"],
        "instruction": "shorter",
    }
    answers = at_once(calls, lambda: api.post(f"/reviews/{review['id']}/decision", json=body))
    assert {answer.status_code for answer in answers} == {200}
    assert [answer.json().get("repeated") for answer in answers].count(True) == calls - 1
    assert api.task()["round"] == 2
    assert [event["kind"] for event in api.events()].count("revised") == 1
    assert api.post(f"/reviews/{review['id']}/decision", json=body).json()["repeated"] is True
    other = api.post(f"/reviews/{review['id']}/decision", json=body | {"verdict": "reject", "reason": "no"})
    assert (other.status_code, other.json()["code"]) == (409, "already_decided")


@pytest.mark.parametrize("calls", [8])
def test_editors_of_the_same_version_do_not_overwrite_each_other(api: Api, calls: int) -> None:
    api.submit("T-1")
    numbers = iter(range(calls))
    answers = at_once(calls, lambda: api.patch("/tasks/T-1", json={"version": 1, "title": f"by {next(numbers)}"}))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * (calls - 1)
    (won,) = [answer.json() for answer in answers if answer.status_code == 200]
    assert api.task() == won
