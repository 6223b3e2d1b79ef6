"""Limits over HTTP: a key's rate and 429, what /queue tells, and what a task that is kept back says."""

from __future__ import annotations

import httpx2
import pytest

from tests.api.conftest import Api


def key_with(api: Api, rate: str | None) -> dict[str, str]:
    limits = {} if rate is None else {"rate": rate}
    made = api.post("/keys", json={"name": f"k{rate}".replace("/", "-"), "scopes": ["submit"], "limits": limits})
    assert (made.status_code, made.json()["limits"]) == (201, limits)
    return {"Authorization": f"Bearer {made.json()['key']}"}


def test_over_its_rate_a_key_is_told_when_to_come_again(api: Api) -> None:
    headers = key_with(api, "2/min")
    for name in ("a", "b"):
        assert api.post("/tasks", json={"type": "trial", "task_id": name}, headers=headers).status_code == 201
    refused = api.post("/tasks", json={"type": "trial", "task_id": "c"}, headers=headers)
    body = refused.json()
    assert (refused.status_code, body["code"]) == (429, "rate_limited")
    assert refused.headers["Retry-After"] == str(body["details"][0]["retry_after"])
    assert 1 <= int(refused.headers["Retry-After"]) <= 30
    assert set(body) == {"message", "code", "details", "request_id"}
    assert api.get("/tasks/c").status_code == 404
    assert api.post("/tasks", json={"type": "trial", "task_id": "a"}, headers=headers).status_code == 200
    many = [{"type": "trial", "task_id": f"n{number}"} for number in range(3)]
    never = api.post("/tasks/bulk", json={"tasks": many}, headers=headers)
    assert (never.status_code, never.json()["code"]) == (422, "too_many_for_rate")


def test_a_keys_rate_is_shown_and_changed(api: Api) -> None:
    headers = key_with(api, "1/d")
    assert api.post("/tasks", json={"type": "trial", "task_id": "a"}, headers=headers).status_code == 201
    assert api.post("/tasks", json={"type": "trial", "task_id": "b"}, headers=headers).status_code == 429
    assert api.patch("/keys/k1-d", json={"limits": {"rate": "5/s"}}).json()["limits"] == {"rate": "5/s"}
    [key] = api.get("/keys").json()["data"]
    assert key["limits"] == {"rate": "5/s"}
    assert api.patch("/keys/k1-d", json={"limits": {}}).json()["limits"] == {}
    assert api.post("/tasks", json={"type": "trial", "task_id": "b"}, headers=headers).status_code == 201
    assert api.patch("/keys/nobody", json={"limits": {}}).status_code == 404


def test_of_a_keys_tasks_no_more_wait_than_it_may(api: Api) -> None:
    made = api.post("/keys", json={"name": "n8n", "scopes": ["submit"], "limits": {"max_waiting": 2}}).json()
    assert made["limits"] == {"max_waiting": 2}
    headers = {"Authorization": f"Bearer {made['key']}"}

    def post(name: str) -> httpx2.Response:
        return api.post("/tasks", json={"type": "trial", "task_id": name}, headers=headers)

    assert [post(name).status_code for name in ("a", "b")] == [201, 201]
    refused = post("c")
    body = refused.json()
    assert (refused.status_code, body["code"]) == (429, "too_many_waiting")
    assert refused.headers["Retry-After"] == str(body["details"][0]["retry_after"]) == "10"
    assert api.get("/tasks/c").status_code == 404
    many = [{"type": "trial", "task_id": f"n{number}"} for number in range(3)]
    never = api.post("/tasks/bulk", json={"tasks": many}, headers=headers)
    assert (never.status_code, never.json()["code"]) == (422, "too_many_at_once")
    assert api.post("/tasks/a/cancel").status_code == 200
    assert post("c").status_code == 201
    assert api.patch("/keys/n8n", json={"limits": {"max_waiting": 3}}).json()["limits"] == {"max_waiting": 3}
    assert [post(name).status_code for name in ("d", "e")] == [201, 429]
    assert api.patch("/keys/n8n", json={"limits": {}}).json()["limits"] == {}
    assert post("e").status_code == 201


@pytest.mark.parametrize("bound", [0, -1, 20_001, "many"])
def test_a_wrong_bound_is_refused_by_its_field(api: Api, bound: object) -> None:
    answer = api.post("/keys", json={"name": "n8n", "scopes": ["submit"], "limits": {"max_waiting": bound}})
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, "limits.max_waiting")
    assert api.get("/keys").json()["data"] == []


@pytest.mark.parametrize("rate", ["0/min", "fast", "60", "5/week"])
def test_a_wrong_rate_is_refused_by_its_field(api: Api, rate: str) -> None:
    answer = api.post("/keys", json={"name": "n8n", "scopes": ["submit"], "limits": {"rate": rate}})
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, "limits.rate")
    assert api.get("/keys").json()["data"] == []


def test_the_queue_tells_what_each_limit_has_used_and_keeps_back(api: Api) -> None:
    types = [
        {
            "name": "few",
            "require_id": False,
            "handler": {"use": "outside"},
            "limits": {"concurrency": 2, "rate": "40/h", "per_day": 100},
        },
        {
            "name": "keyed",
            "require_id": False,
            "handler": {"use": "outside"},
            "limits": {"concurrency_key": "{{ payload.k }}"},
        },
    ]
    assert api.post("/types", json={"types": types}).status_code == 200
    for number in range(5):
        api.post("/tasks", json={"type": "few", "task_id": f"F-{number}", "priority": "P3"})
        api.post("/tasks", json={"type": "keyed", "task_id": f"K-{number}", "payload": {"k": number % 2}})
    taken = api.post("/claims", json={"worker": "w", "limit": 10}).json()["data"]
    assert sorted(it["task"]["task_id"] for it in taken) == ["F-0", "F-1", "K-0", "K-1"]
    queue = api.get("/queue").json()
    few, keyed = queue["limits"]
    assert (few["limit"], few["held"]) == ("type:few", 3)
    assert few["concurrency"] == {"limit": 2, "running": 2}
    assert few["rate"] == {"limit": "40/h", "free": 0}
    assert (few["per_day"]["limit"], few["per_day"]["used"]) == (100, 2)
    assert few["opens_at"] is not None
    assert keyed == {"limit": "type:keyed", "held": 0, "per_key": {"limit": 1, "running": 2, "held": 3, "keys_held": 2}}
    assert {lane["lane"]: (lane["ready"], lane["held"]) for lane in queue["lanes"]}["P3"] == (0, 3)
    assert queue["status"]["pending"] == 6
    why = api.get("/tasks/F-4").json()["waiting_for"]
    assert (why["code"], why["limit"], why["opens_at"]) == ("limit", "type:few", few["opens_at"])
    assert api.get("/tasks/K-4").json()["waiting_for"]["code"] == "limit"
