"""Subscriptions over HTTP: made, found again, removed, each key its own."""

from typing import Any

import pytest

from board.effects import subscriptions
from tests.api.conftest import Api, OpenApi
from tests.rig.receiver import Receiver

URL = "https://n8n.example.org/webhook/board"
WISH: dict[str, Any] = {"url": URL, "events": ["task.failed", "task.done"]}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One process knows of its own changes at once; the answer waits for others."""
    monkeypatch.setattr(subscriptions, "KNOWN_SECONDS", 0.0)


def test_made_found_and_removed(api: Api) -> None:
    n8n = api.as_key("read")
    made = n8n.post("/subscriptions", json=WISH | {"types": ["trial"], "secret": "s3cret-of-n8n"})
    assert made.status_code == 201
    body = made.json()
    assert (body["url"], body["events"], body["types"]) == (URL, ["task.done", "task.failed"], ["trial"])
    assert (body["status"], body["owner"], body["has_secret"], body["waiting"]) == ("active", "key:n8n", True, 0)
    assert (body["last"], body["trying"], body["note"]) == (None, None, None)
    assert "s3cret-of-n8n" not in made.text
    again = n8n.post("/subscriptions", json=WISH)
    assert again.status_code == 200
    assert again.json() == body | {"types": None, "has_secret": False}
    assert n8n.get("/subscriptions").json() == {"data": [again.json()], "next_cursor": None, "next_url": None}
    assert n8n.get(f"/subscriptions/{body['id']}").json() == again.json()
    gone = n8n.request("DELETE", f"/subscriptions/{body['id']}")
    assert gone.json() == {"id": body["id"], "deleted": True}
    assert n8n.request("DELETE", f"/subscriptions/{body['id']}").status_code == 404
    assert n8n.get("/subscriptions").json()["data"] == []


def test_each_key_sees_its_own_and_an_administrator_all(api: Api) -> None:
    one, other = api.as_key("read", name="one"), api.as_key("review", name="other")
    made = one.post("/subscriptions", json=WISH).json()
    assert other.get("/subscriptions").json()["data"] == []
    assert other.get(f"/subscriptions/{made['id']}").status_code == 404
    refused = other.post("/subscriptions", json=WISH)
    assert (refused.status_code, refused.json()["code"]) == (409, "subscription_exists")
    assert [row["id"] for row in api.get("/subscriptions").json()["data"]] == [made["id"]]
    assert api.as_key("submit", name="third").get("/subscriptions").status_code == 403


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"url": "http://127.0.0.1:1/x"}, "url"),
        ({"events": []}, "events"),
        ({"events": ["task.gone"]}, "events.0"),
        ({"secret": "whsec_not base64"}, "secret"),
        ({"types": [""]}, "types.0"),
        ({"more": 1}, "more"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(one_api: Api, wrong: dict[str, Any], field: str) -> None:
    answer = one_api.post("/subscriptions", json=WISH | wrong)
    assert answer.status_code == 422
    assert answer.json()["details"][0]["field"] == field


def test_the_answer_waits_until_others_know(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(subscriptions, "KNOWN_SECONDS", 0.5)
    monkeypatch.setattr("time.sleep", slept.append)
    api.post("/subscriptions", json=WISH)
    assert 0.5 in slept


def test_from_the_answer_on_everything_is_told(open_api: OpenApi, receiver: Receiver) -> None:
    api = open_api(work=True, allow_private_targets=["127.0.0.1"])
    made = api.post("/subscriptions", json={"url": receiver.url, "events": ["task.created", "task.done"]}).json()
    api.submit("T-1")
    receiver.wait_for(2)
    listed = api.get("/operations?kind=webhook.subscription&task_id=T-1").json()["data"]
    assert len(listed) == 2
    assert api.get("/tasks/T-1/operations").json()["data"] == []
    shown = api.get(f"/subscriptions/{made['id']}").json()
    assert shown["last"] is None or shown["last"]["event"] in ("task.created", "task.done")
    assert api.post(f"/subscriptions/{made['id']}/resend").json()["resent"] == 0
