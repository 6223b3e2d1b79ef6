"""Schedules over HTTP: checked when they are made, changed by version, for administrators."""

from datetime import datetime
from typing import Any

import pytest

from board.upkeep.firing import Firing
from tests.api.conftest import Api

DAILY = {
    "name": "daily",
    "cron": "0 9 * * 1",
    "zone": "Asia/Shanghai",
    "task": {"type": "trial", "task_id": "d:{{ due_at }}"},
}


def test_a_schedule_is_made_listed_changed_paused_and_removed(api: Api) -> None:
    made = api.post("/schedules", json=DAILY)
    assert made.status_code == 201
    body = made.json()
    assert {key: body[key] for key in DAILY} == DAILY
    assert (body["version"], body["catch_up"], body["paused"], body["changed_by"]) == (1, "one", False, "key:bootstrap")
    due = datetime.fromisoformat(body["next_at"])
    assert (due.weekday(), due.hour, due.minute) == (0, 1, 0), "Monday 09:00 in Shanghai"
    assert [row["name"] for row in api.get("/schedules").json()["data"]] == ["daily"]
    one = api.get("/schedules/daily").json()
    assert one == body | {"firings": []}
    changed = api.patch("/schedules/daily", json={"version": 1, "cron": "0 10 * * 1", "catch_up": "skip"}).json()
    assert (changed["version"], changed["cron"], changed["catch_up"]) == (2, "0 10 * * 1", "skip")
    assert changed["zone"] == "Asia/Shanghai"
    assert datetime.fromisoformat(changed["next_at"]).hour == 2
    paused = api.patch("/schedules/daily", json={"version": 2, "paused": True}).json()
    assert (paused["paused"], paused["next_at"], paused["version"]) == (True, None, 3)
    resumed = api.patch("/schedules/daily", json={"version": 3, "paused": False}).json()
    assert resumed["next_at"] == changed["next_at"]
    assert api.request("DELETE", "/schedules/daily").json() == {"name": "daily", "deleted": True}
    assert api.get("/schedules/daily").status_code == 404
    assert api.get("/schedules").json()["data"] == []


def test_what_it_fired_is_shown_with_it(api: Api, at: Any) -> None:
    api.post("/schedules", json=DAILY | {"cron": "* * * * *"})
    at(61)
    assert Firing(api.board.db, api.board.intake).fire() == 1
    [firing] = api.get("/schedules/daily").json()["firings"]
    assert firing["task_id"] == f"d:{firing['due_at']}"
    assert firing["note"] is None
    assert api.task(firing["task_id"])["origin"]["workflow_id"] == "daily"


def test_the_board_s_zone_counts_where_none_is_named(open_api: Any) -> None:
    api = open_api(timezone="Europe/Berlin")
    body = {key: value for key, value in DAILY.items() if key != "zone"}
    assert api.post("/schedules", json=body).json()["zone"] == "Europe/Berlin"


def test_a_name_that_is_taken_and_a_version_that_is_old_are_conflicts(api: Api) -> None:
    api.post("/schedules", json=DAILY)
    again = api.post("/schedules", json=DAILY | {"cron": "0 0 * * *"})
    assert (again.status_code, again.json()["code"]) == (409, "schedule_exists")
    api.patch("/schedules/daily", json={"version": 1, "paused": True})
    stale = api.patch("/schedules/daily", json={"version": 1, "paused": False})
    assert (stale.status_code, stale.json()["code"]) == (409, "stale_version")
    assert api.get("/schedules/daily").json()["paused"] is True
    for method in ("GET", "PATCH", "DELETE"):
        more = {"json": {"version": 1}} if method == "PATCH" else {}
        unknown = api.request(method, "/schedules/nightly", **more)
        assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "no/slash"}, "name"),
        ({"name": ""}, "name"),
        ({"cron": "every day"}, "cron"),
        ({"cron": "0 0 31 2 *"}, "cron"),
        ({"cron": "0 9 * * 8"}, "cron"),
        ({"zone": "Mars/Olympus"}, "zone"),
        ({"catch_up": "some"}, "catch_up"),
        ({"more": 1}, "more"),
        ({"task": {}}, "task.type"),
        ({"task": {"type": "nothing"}}, "task.type"),
        ({"task": {"type": "trial", "colour": "red"}}, "task.colour"),
        ({"task": {"type": "trial", "priority": "P9"}}, "task.priority"),
        ({"task": {"type": "trial", "task_id": "always the same"}}, "task.task_id"),
        ({"task": {"type": "trial", "task_id": "{{ nothing }}"}}, "task.task_id"),
        ({"task": {"type": "trial", "task_id": "{{ due_at"}}, "task.task_id"),
        ({"task": {"type": "trial", "task_id": "a/{{ due_at }}"}}, "task.task_id"),
        ({"task": {"type": "trial", "run_after": "2027-01-01T00:00:00Z"}}, "task.run_after"),
        ({"task": {"type": "trial", "deadline_at": "2027-01-01T00:00:00Z"}}, "task.deadline_at"),
        ({"task": {"type": "trial", "callback_url": "http://127.0.0.1/"}}, "task.callback_url"),
        ({"task": {"type": "strict", "payload": {}}}, "task.payload"),
    ],
    ids=str,
)
def test_what_could_not_fire_is_refused_and_names_the_field(api: Api, change: dict[str, Any], field: str) -> None:
    api.types(
        {"name": "strict", "handler": {"use": "echo"}, "payload_schema": {"type": "object", "required": ["text"]}}
    )
    refused = api.post("/schedules", json=DAILY | change)
    assert refused.status_code == 422, refused.text
    assert refused.json()["details"][0]["field"] == field
    assert field in refused.json()["message"]
    assert api.get("/schedules").json()["data"] == []


def test_a_change_is_checked_like_a_new_one(api: Api) -> None:
    before = api.post("/schedules", json=DAILY).json()
    for change in ({"cron": "never"}, {"zone": "Mars/Olympus"}, {"task": {"type": "nothing"}}):
        assert api.patch("/schedules/daily", json={"version": 1, **change}).status_code == 422
    assert api.get("/schedules/daily").json() == before | {"firings": []}


@pytest.mark.parametrize("scope", ["submit", "read", "work", "review"])
def test_only_administrators_see_and_change_schedules(api: Api, scope: str) -> None:
    api.post("/schedules", json=DAILY)
    other = api.as_key(scope)
    for method, path, body in (
        ("GET", "/schedules", None),
        ("POST", "/schedules", DAILY | {"name": "mine"}),
        ("GET", "/schedules/daily", None),
        ("PATCH", "/schedules/daily", {"version": 1, "paused": True}),
        ("DELETE", "/schedules/daily", None),
    ):
        assert other.request(method, path, **({"json": body} if body else {})).status_code == 403
    assert api.get("/schedules").json()["data"][0]["paused"] is False


def test_schedules_come_in_pages(api: Api) -> None:
    for name in "cab":
        api.post("/schedules", json=DAILY | {"name": name})
    first = api.get("/schedules?limit=2").json()
    second = api.get(f"/schedules?limit=2&cursor={first['next_cursor']}").json()
    assert [row["name"] for row in first["data"] + second["data"]] == ["a", "b", "c"]
    assert second["next_cursor"] is None
