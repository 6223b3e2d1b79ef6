"""Routes, notices and alerts over the API: who may make which, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from board.access import users
from tests.api.conftest import Api, open_api  # noqa: F401 - a fixture

POST = {"name": "post", "kind": "mail", "url": "smtps://mail.example.org", "sender": "board@example.org"}
TEAM = {"name": "team", "kind": "slack", "url": "https://hooks.slack.com/services/T/B/x"}
DIFY = {"name": "dify", "kind": "dify", "url": "https://dify.example.org/v1", "key": "app-x"}
ROUTE = {"audience": "*", "about": ["failed", "alert"], "connection": "team"}


@pytest.fixture
def api(open_api: Any) -> Api:  # noqa: F811
    made: Api = open_api()
    made.types(connections=[POST, TEAM, DIFY])
    with made.board.db.write() as tx:
        users.add(tx, "li@example.org")
    return made


def test_a_route_is_made_listed_and_removed(api: Api) -> None:
    made = api.post("/notices/routes", json=ROUTE | {"quiet": {"from": "22:00", "to": "7:00"}, "zone": "Asia/Shanghai"})
    assert made.status_code == 422  # 7:00 is no time of day here
    made = api.post(
        "/notices/routes", json=ROUTE | {"quiet": {"from": "22:00", "to": "07:00"}, "zone": "Asia/Shanghai"}
    )
    assert made.status_code == 201, made.text
    body = made.json()
    assert (body["about"], body["quiet"], body["address"]) == (
        ["failed", "alert"],
        {"from": "22:00", "to": "07:00"},
        None,
    )
    assert api.get("/notices/routes").json()["data"] == [body]
    assert api.request("DELETE", f"/notices/routes/{body['id']}").json()["deleted"]
    assert api.request("DELETE", f"/notices/routes/{body['id']}").status_code == 404
    assert api.get("/notices").json()["data"] == []


def test_mail_goes_to_the_address_of_who_is_told(api: Api) -> None:
    body = api.post("/notices/routes", json=ROUTE | {"audience": "li@example.org", "connection": "post"}).json()
    assert body["address"] == "li@example.org"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"connection": "nobody"}, "connection"),
        ({"connection": "dify"}, "connection"),
        ({"connection": "post"}, "address"),
        ({"audience": "sales"}, "audience"),
        ({"audience": "wang@example.org"}, "audience"),
        ({"audience": None}, "audience"),
        ({"about": []}, "about"),
        ({"about": ["nonsense"]}, "about"),
        ({"zone": "Mars/Olympus"}, "zone"),
        ({"quiet": {"from": "25:00", "to": "07:00"}}, "quiet"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_cannot_be_told_is_refused_naming_the_field(api: Api, change: dict[str, Any], field: str) -> None:
    answer = api.post("/notices/routes", json=ROUTE | change)
    assert answer.status_code == 422
    assert field in answer.json()["details"][0]["field"]


def test_telling_a_chat_takes_an_administrator(api: Api) -> None:
    reader = api.as_key("read", name="reader")
    assert reader.post("/notices/routes", json=ROUTE).status_code == 403
    api.post("/notices/routes", json=ROUTE)
    assert reader.get("/notices/routes").json()["data"] == []
    assert api.as_key("submit", name="caller").get("/notices/routes").status_code == 403


def test_rules_are_shown_and_changed_by_an_administrator(api: Api) -> None:
    shown = api.get("/alerts/rules").json()["data"]
    assert {"rule": "queue_depth", "threshold": 300, "lasting": 300, "quiet": 3600, "enabled": True} in shown
    changed = api.patch("/alerts/rules/queue_depth", json={"threshold": 1000})
    assert changed.json()["threshold"] == 1000
    assert api.get("/alerts/rules").json()["data"][0]["threshold"] == 1000
    assert api.patch("/alerts/rules/nonsense", json={}).status_code == 404
    assert api.patch("/alerts/rules/queue_depth", json={"threshold": -1}).status_code == 422
    assert api.as_key("read", name="r").patch("/alerts/rules/queue_depth", json={}).status_code == 403
    assert api.get("/alerts?status=open").json()["data"] == []
