"""Decisions as they come in over HTTP."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from board.access import groups, keys
from board.app import build_app
from board.ports import Job, Outcome, Success, UnknownOutcome
from tests.rig.asgi import serve
from tests.rig.board import API_KEY, api
from tests.rig.working import OpenWorking, Probe, WorkingBoard


async def lose(job: Job) -> Outcome:
    """Loses the first answer of every task; calls only where the payload says so."""
    if job.attempt > 1:
        return Success()
    if job.payload.get("announced"):
        await job.send(kind="probe.call", target="the printer", request=b"print")
    return UnknownOutcome("No answer.")


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    board = working(Probe(lose, side_effects=True), bootstrap_api_key=API_KEY)
    board.type()
    board.type("echo", use="echo", review={"when": "always", "grace": "60s"})
    return board


@pytest.fixture
def client(board: WorkingBoard) -> Iterator[httpx2.Client]:
    with serve(build_app(board.board)) as url, api(url) as client:
        yield client


def shown(client: httpx2.Client, task_id: str = "T-1") -> dict[str, Any]:
    """The open review of a task, as a reviewer's page has it."""
    task = client.get(f"/tasks/{task_id}").json()
    review: dict[str, Any] = client.get(f"/reviews/{task['review']['id']}").json()
    return review


def test_approve_repeat_conflict_and_undo(board: WorkingBoard, client: httpx2.Client) -> None:
    board.submit(type="echo")
    board.wait("T-1", "needs_review")
    review = shown(client)
    assert (review["reason"], review["verdicts"]) == ("policy", ["approve", "revise", "reject"])
    assert review["operation_id"] is None
    address = f"/reviews/{review['id']}"
    decision = {"verdict": "approve", "version": review["version"], "content_hash": review["content_hash"]}
    first = client.post(f"{address}/decision", json=decision)
    assert (first.status_code, first.json()["status"], first.json().get("repeated")) == (200, "pending", None)
    again = client.post(f"{address}/decision", json=decision)
    assert (again.status_code, again.json()["repeated"]) == (200, True)
    other = client.post(f"{address}/decision", json=decision | {"verdict": "reject"})
    assert (other.status_code, other.json()["code"]) == (409, "already_decided")
    assert other.json()["details"][0]["by"] == "key:bootstrap"
    undone = client.post(f"{address}/undo")
    assert (undone.status_code, undone.json()["status"]) == (200, "needs_review")
    stale = client.post(f"{address}/decision", json=decision)
    assert (stale.status_code, stale.json()["code"]) == (409, "review_changed")
    client.post("/tasks/T-1/cancel")
    late = client.post("/tasks/T-1/approve")
    assert (late.status_code, late.json()["code"]) == (409, "already_decided")


def test_an_unknown_outcome_is_resolved_on_its_operation(board: WorkingBoard, client: httpx2.Client) -> None:
    board.submit(payload={"announced": True})
    board.wait("T-1", "needs_review")
    review = shown(client)
    assert review["verdicts"] == ["happened", "not_happened", "drop"]
    wrong = client.post("/tasks/T-1/approve")
    assert (wrong.status_code, wrong.json()["code"]) == (422, "verdict_not_offered")
    body = {"outcome": "happened", "reason": "Paper came out.", "external_reference": "job-9", "result": {"pages": 2}}
    address = f"/operations/{review['operation_id']}/resolve"
    solved = client.post(address, json=body)
    assert (solved.status_code, solved.json()["status"], solved.json()["result"]) == (200, "done", {"pages": 2})
    assert client.post(address, json=body).json()["repeated"] is True
    other = client.post(address, json=body | {"outcome": "drop"})
    assert (other.status_code, other.json()["code"]) == (409, "already_decided")
    [operation] = client.get("/tasks/T-1/operations").json()["data"]
    assert (operation["status"], operation["external_reference"]) == ("confirmed", "job-9")


def test_without_an_operation_the_review_itself_takes_the_answer(board: WorkingBoard, client: httpx2.Client) -> None:
    board.submit()
    board.wait("T-1", "needs_review")
    review = shown(client)
    assert review["operation_id"] is None
    decision = {"verdict": "not_happened", "version": review["version"], "content_hash": review["content_hash"]}
    answer = client.post(f"/reviews/{review['id']}/decision", json=decision)
    assert answer.status_code == 200, answer.text
    board.wait("T-1", "done")


def test_there_is_nothing_to_resolve_where_all_is_known(board: WorkingBoard, client: httpx2.Client) -> None:
    body = {"outcome": "drop", "reason": "x"}
    for number in ("4711", "x", "9" * 30):
        missing = client.post(f"/operations/{number}/resolve", json=body)
        assert (missing.status_code, missing.json()["code"]) == (404, "operation_not_found")


def test_taken_put_aside_assigned_and_commented(board: WorkingBoard, client: httpx2.Client) -> None:
    board.submit(type="echo")
    board.wait("T-1", "needs_review")
    review = f"/reviews/{shown(client)['id']}"
    claimed = client.post(f"{review}/claim")
    assert (claimed.status_code, claimed.json()["claimed_by"]) == (200, "key:bootstrap")
    assert claimed.json()["claimed_until"] is not None
    assert client.post(f"{review}/release").json()["claimed_by"] is None
    aside = client.post(f"{review}/snooze", json={"until": "2100-01-01T00:00:00Z"})
    assert (aside.status_code, aside.json()["code"]) == (422, "bad_time")
    assert client.post(f"{review}/snooze", json={}).status_code == 422
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert client.post(f"{review}/snooze", json={"until": soon}).json()["snoozed_until"] is not None
    assert client.get("/reviews").json()["data"] == []
    assert [it["task_id"] for it in client.get("/reviews", params={"status": "snoozed"}).json()["data"]] == ["T-1"]
    assert client.post(f"{review}/assign", json={"assignee": "nobody@example.org"}).status_code == 422
    said = client.post(f"{review}/comment", json={"text": "Is the price right?"})
    assert said.status_code == 201
    assert client.post(f"{review}/comment", json={"text": ""}).status_code == 422
    answer = client.post("/tasks/T-1/comments", json={"text": "It is. 是的。"})
    assert (answer.status_code, answer.json()["by"]) == (201, "key:bootstrap")
    comments = client.get("/tasks/T-1/comments").json()["data"]
    assert [it["text"] for it in comments] == ["Is the price right?", "It is. 是的。"]
    assert client.post("/reviews/999999/claim").status_code == 404


def test_a_key_that_only_submits_comments_on_its_own_tasks_alone(board: WorkingBoard, client: httpx2.Client) -> None:
    with board.board.db.write() as tx:
        secret = keys.create(tx, "caller", ["submit"])
    board.submit(type="echo")
    board.wait("T-1", "needs_review")
    mine = {"Authorization": f"Bearer {secret}"}
    made = client.post("/tasks", json={"type": "echo", "task_id": "T-2"}, headers=mine)
    assert made.status_code == 201
    assert client.post("/tasks/T-2/comments", json={"text": "Mine."}, headers=mine).status_code == 201
    assert client.post("/tasks/T-1/comments", json={"text": "Not mine."}, headers=mine).status_code == 404
    assert client.post(f"/reviews/{shown(client)['id']}/claim", headers=mine).status_code == 403


def test_attempts_say_what_was_asked_for_in_their_round(board: WorkingBoard, client: httpx2.Client) -> None:
    board.submit(type="echo", payload={"n": 1})
    board.wait("T-1", "needs_review")
    board.decide("T-1", "revise", instruction="更短一些")
    board.until(lambda: board.task()["round"] == 2 and board.task()["status"] == "needs_review")
    shown = client.get(f"/reviews/{board.reviews()[-1]['id']}").json()
    assert [(it["round"], it["instruction"]) for it in shown["attempts"]] == [(1, None), (2, "更短一些")]


def test_comments_call_people_and_go_back_page_by_page(board: WorkingBoard, client: httpx2.Client) -> None:
    board.submit(type="echo", payload={"n": 1})
    with board.board.db.write() as tx:
        groups.add(tx, "sales")
    for text in ("one", "请@sales看", "three"):
        made = client.post("/tasks/T-1/comments", json={"text": text}).json()
        assert made["mentions"] == (["group:sales"] if "@" in text else [])
    last = client.get("/tasks/T-1/comments", params={"limit": 2}).json()
    assert [it["text"] for it in last["data"]] == ["请@sales看", "three"]
    first = client.get("/tasks/T-1/comments", params={"limit": 2, "cursor": last["next_cursor"]}).json()
    assert ([it["text"] for it in first["data"]], first["next_cursor"]) == (["one"], None)
    assert client.get("/tasks/T-1/comments", params={"cursor": "x"}).status_code == 422
