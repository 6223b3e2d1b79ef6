"""Approving many over HTTP: what would go together, each on its own, the report, and taking it back."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from board.app import build_app
from tests.rig.asgi import serve
from tests.rig.board import API_KEY, api
from tests.rig.working import OpenWorking, WorkingBoard

AT = "/reviews/bulk-decision"


@pytest.fixture
def board(working_sqlite: OpenWorking) -> WorkingBoard:
    board = working_sqlite(bootstrap_api_key=API_KEY)
    board.type("letter", "echo", review={"when": "always", "grace": "60s"})
    for number in (1, 2, 3):
        board.submit(f"T-{number}", "letter", payload={"text": str(number)}, title=f"Letter {number}")
        board.wait(f"T-{number}", "needs_review")
    return board


@pytest.fixture
def client(board: WorkingBoard) -> Iterator[httpx2.Client]:
    with serve(build_app(board.board)) as url, api(url) as client:
        yield client


def pins(client: httpx2.Client) -> list[dict[str, Any]]:
    shown = client.post(f"{AT}/preview", json={"filter": {"type": "letter"}}).json()["data"]
    return [{name: it[name] for name in ("id", "version", "content_hash")} for it in shown]


def test_a_preview_names_each_and_what_is_left_out(board: WorkingBoard, client: httpx2.Client) -> None:
    board.submit("T-4", "letter", payload={"other": 1})
    board.wait("T-4", "needs_review")
    ids = [str(board.reviews(f"T-{n}")[-1]["id"]) for n in (2, 1, 4)]
    answer = client.post(f"{AT}/preview", json={"ids": [*ids, "999999"]})
    body = answer.json()
    assert (answer.status_code, body["count"], body["more"]) == (200, 2, False)
    assert [(it["task_id"], it["title"], it["consequence"]) for it in body["data"]] == [
        ("T-2", "Letter 2", None),
        ("T-1", "Letter 1", None),
    ]
    assert [(it["task_id"], it["code"]) for it in body["left_out"]] == [("T-4", "other_shape"), (None, "not_found")]
    assert all(it["message"].endswith(".") for it in body["left_out"])
    assert {board.task(f"T-{n}")["status"] for n in (1, 2, 4)} == {"needs_review"}, "looking changes nothing"


def test_each_counts_on_its_own_and_the_report_says_so(board: WorkingBoard, client: httpx2.Client) -> None:
    sent = {"verdict": "approve", "reviews": pins(client), "reason": "Spot check."}
    board.decide("T-2", "reject")
    client.patch("/tasks/T-3", json={"title": "Other", "version": board.task("T-3")["version"]})
    answer = client.post(AT, json=sent)
    body = answer.json()
    assert answer.status_code == 200
    assert body["summary"] == "1 approved, 1 decided meanwhile, 1 changed meanwhile."
    assert (body["approved"], body["refused"]) == (1, 2)
    assert [(it["task_id"], it["status"], it.get("code")) for it in body["data"]] == [
        ("T-1", "approved", None),
        ("T-2", "refused", "already_decided"),
        ("T-3", "refused", "review_changed"),
    ]
    [event] = [it for it in board.events("T-1") if it["kind"] == "approved"]
    assert (event["actor_name"], event["channel"], event["note"]) == ("bootstrap", "api", "Spot check.")
    again = client.post(AT, json=sent).json()
    assert (again["approved"], again["data"][0]["status"]) == (1, "repeated")
    assert board.kinds("T-1").count("approved") == 1


def test_all_are_taken_back_within_their_grace_time(board: WorkingBoard, client: httpx2.Client) -> None:
    shown = pins(client)
    client.post(AT, json={"verdict": "approve", "reviews": shown})
    body = client.post(f"{AT}/undo", json={"ids": [it["id"] for it in shown]}).json()
    assert (body["undone"], body["refused"], body["summary"]) == (3, 0, "3 undone.")
    assert {board.task(f"T-{n}")["status"] for n in (1, 2, 3)} == {"needs_review"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"verdict": "reject", "reviews": [{"id": "1", "version": 1, "content_hash": "x"}]}, "verdict"),
        ({"verdict": "approve", "reviews": []}, "reviews"),
        ({"verdict": "approve", "reviews": [{"id": "1", "version": 1}]}, "content_hash"),
        ({"verdict": "approve", "reviews": [{"id": "1", "version": 1, "content_hash": "x"}] * 101}, "reviews"),
        ({"verdict": "approve", "reviews": [{"id": "1", "version": 1, "content_hash": "x"}] * 2}, "reviews"),
        ({"verdict": "approve", "reviews": [{"id": "x", "version": 1, "content_hash": "x"}]}, "id"),
    ],
)
def test_a_bad_body_is_refused_and_names_its_field(client: httpx2.Client, body: dict[str, Any], field: str) -> None:
    answer = client.post(AT, json=body)
    assert answer.status_code == 422
    assert field in str(answer.json()["details"][0]["field"])


def test_ids_or_a_filter_and_only_for_whoever_decides(board: WorkingBoard, client: httpx2.Client) -> None:
    for body in ({}, {"ids": ["1"], "filter": {"type": "letter"}}):
        assert client.post(f"{AT}/preview", json=body).status_code == 422
    answer = client.post(f"{AT}/preview", json={"filter": {"type": "letter", "due": "soon"}})
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, "due")
    key = client.post("/keys", json={"name": "reader", "scopes": ["read"]}).json()["key"]
    for path, sent in (("/preview", {"ids": ["1"]}), ("", {"verdict": "approve", "reviews": pins(client)})):
        refused = client.post(f"{AT}{path}", json=sent, headers={"Authorization": f"Bearer {key}"})
        assert refused.status_code == 403


def test_the_list_of_reviews_is_narrowed_by_the_same_filters(board: WorkingBoard, client: httpx2.Client) -> None:
    def ids(query: str) -> list[str]:
        return [it["task_id"] for it in client.get(f"/reviews?{query}").json()["data"]]

    assert ids("risk=low,high&reason=policy") == ["T-1", "T-2", "T-3"]
    assert ids("risk=high") == []
    assert ids("reason=sample") == []
    assert ids("due=none&type=letter") == ["T-1", "T-2", "T-3"]
    assert ids("due=overdue") == ids("due=today") == ids("due=2099-01-01T00:00:00Z") == []
    for query, field in (("risk=huge", "risk"), ("reason=x", "reason"), ("due=2099-01-01", "due")):
        answer = client.get(f"/reviews?{query}")
        assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, field)
