"""What holds for every call: who may, which errors, ids of requests, addresses and methods."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from tests.api.conftest import BOOTSTRAP, Api

IDS = json.loads((Path(__file__).parent.parent / "data/cases/web/external_ids.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer nope"},
        {"Authorization": "Bearer"},
        {"Authorization": f"Basic {BOOTSTRAP}"},
        {"X-API-Key": "nope"},
        {"X-API-Key": BOOTSTRAP + "x"},
        {"Authorization": "Bearer \xfc".encode("latin-1")},
    ],
    ids=repr,
)
def test_without_a_known_key_it_is_401(one_api: Api, headers: dict[str, Any]) -> None:
    for method, path in [("GET", "/me"), ("POST", "/tasks"), ("GET", "/tasks/nope"), ("DELETE", "/keys/x")]:
        answer = httpx2.request(method, f"{one_api.url}/api/v1{path}", headers=headers, trust_env=False, verify=False)
        assert answer.status_code == 401
        assert answer.json()["code"] == "unauthorized"
        assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {BOOTSTRAP}"},
        {"Authorization": f"bearer  {BOOTSTRAP}"},
        {"Authorization": f"Bearer Bearer {BOOTSTRAP}"},
        {"X-API-Key": BOOTSTRAP},
    ],
    ids=repr,
)
def test_the_ways_to_send_a_key(one_api: Api, headers: dict[str, str]) -> None:
    answer = httpx2.get(f"{one_api.url}/api/v1/me", headers=headers, trust_env=False, verify=False)
    assert answer.status_code == 200
    assert answer.json()["identity"] == "key:bootstrap"


CALLS: list[tuple[str, str, Any, set[str]]] = [
    ("GET", "/me", None, {"submit", "read", "work", "review", "admin"}),
    ("POST", "/tasks", {"type": "trial"}, {"submit", "admin"}),
    ("POST", "/tasks/bulk", {"tasks": [{"type": "trial"}]}, {"submit", "admin"}),
    ("GET", "/tasks", None, {"submit", "read", "review", "admin"}),
    ("GET", "/types", None, {"submit", "read", "review", "admin"}),
    ("GET", "/types/trial", None, {"submit", "read", "review", "admin"}),
    ("POST", "/types", {"types": []}, {"admin"}),
    ("GET", "/connections", None, {"read", "review", "admin"}),
    ("POST", "/connections", {}, {"admin"}),
    ("GET", "/reviews", None, {"read", "review", "admin"}),
    ("GET", "/keys", None, {"admin"}),
    ("POST", "/keys", {"name": "x", "scopes": ["nope"]}, {"admin"}),
    ("GET", "/users", None, {"admin"}),
    ("POST", "/users", {"email": "nope"}, {"admin"}),
]


@pytest.mark.parametrize("scope", ["submit", "read", "work", "review", "admin"])
def test_each_scope_may_what_the_table_says(api: Api, scope: str) -> None:
    key = api.as_key(scope)
    allowed = {(method, path) for method, path, _, scopes in CALLS if scope in scopes}
    seen = set()
    for method, path, body, _ in CALLS:
        answer = key.request(method, path, json=body) if body is not None else key.request(method, path)
        if answer.status_code != 403:
            seen.add((method, path))
        else:
            assert answer.json()["code"] == "forbidden"
    assert seen == allowed


def test_tasks_of_others_exist_only_for_those_who_may_read_them(api: Api) -> None:
    api.submit("T-1")
    mine = api.as_key("submit", name="shop")
    mine.submit("S-1")
    assert [task["task_id"] for task in mine.get("/tasks").json()["data"]] == ["S-1"]
    assert mine.get("/tasks?task_id=T-1").json()["data"] == []
    calls = [("GET", ""), ("GET", "/events"), ("GET", "/attempts"), ("GET", "/operations"), ("POST", "/cancel")]
    for method, tail in calls:
        assert mine.request(method, f"/tasks/T-1{tail}").status_code == 404, tail
        assert mine.request(method, f"/tasks/S-1{tail}").status_code == 200, tail
    assert mine.patch("/tasks/T-1", json={"version": 1, "title": "x"}).status_code == 404
    assert api.task()["status"] == "pending"
    reader = api.as_key("read", name="reader")
    assert reader.get("/tasks/T-1").status_code == 200
    for method, tail in [("POST", "/cancel"), ("POST", "/requeue"), ("POST", "/run-now"), ("POST", "/acknowledge")]:
        assert reader.request(method, f"/tasks/T-1{tail}").status_code == 403, tail
    assert reader.patch("/tasks/T-1", json={"version": 1, "title": "x"}).status_code == 403


def test_a_revoked_key_is_unknown_at_once(api: Api) -> None:
    key = api.as_key("read", name="gone")
    assert key.get("/me").json()["scopes"] == ["read"]
    assert api.request("DELETE", "/keys/gone").status_code == 200
    assert key.get("/me").status_code == 401
    assert api.request("DELETE", "/keys/gone").status_code == 200
    assert api.request("DELETE", "/keys/never").status_code == 404


@pytest.mark.parametrize(
    "path", ["/nope", "/tasks/T-0", "/tasks/T-0/events", "/types/nope", "/reviews/1", "/reviews/x", "/"]
)
def test_what_is_not_there_is_404(one_api: Api, path: str) -> None:
    assert one_api.get(path).status_code == 404


@pytest.mark.parametrize("number", ["9" * 18, "9" * 40, "-1", "1.5", "²", "0x1"])
def test_numbers_of_things_may_be_anything(one_api: Api, number: str) -> None:
    assert one_api.get(f"/reviews/{number}").status_code == 404
    decision = {"verdict": "approve", "version": 1, "content_hash": "x"}
    assert one_api.post(f"/reviews/{number}/decision", json=decision).status_code == 404
    assert one_api.post(f"/reviews/{number}/undo").status_code == 404
    resolve = {"outcome": "drop", "reason": "x"}
    assert one_api.post(f"/operations/{number}/resolve", json=resolve).status_code == 404


@pytest.mark.parametrize(
    ("method", "path"), [("DELETE", "/tasks"), ("PUT", "/tasks/T-1"), ("GET", "/tasks/T-1/cancel"), ("PATCH", "/me")]
)
def test_a_wrong_method_is_405(one_api: Api, method: str, path: str) -> None:
    answer = one_api.request(method, path)
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.headers["allow"]


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/me", "GET, HEAD, OPTIONS"),
        ("/tasks", "GET, POST, HEAD, OPTIONS"),
        ("/tasks/T-1", "GET, PATCH, HEAD, OPTIONS"),
        ("/tasks/T-1/cancel", "POST, OPTIONS"),
        ("/keys/x", "PATCH, DELETE, OPTIONS"),
    ],
)
def test_options_names_every_method_of_an_address(one_api: Api, path: str, methods: str) -> None:
    url = f"{one_api.url}/api/v1{path}"
    answer = httpx2.request("OPTIONS", url, trust_env=False, verify=False)  # what is in the reference is no secret
    assert (answer.status_code, answer.headers["allow"], answer.content) == (204, methods, b"")
    assert answer.headers["x-request-id"]
    assert httpx2.request("PUT", url, trust_env=False, verify=False).headers["allow"] == methods
    assert httpx2.request("OPTIONS", f"{one_api.url}/api/v1/nope", trust_env=False, verify=False).status_code == 404


@pytest.mark.parametrize("path", ["/me", "/tasks", "/tasks?limit=1", "/tasks/nope", "/queue?colour=red", "/keys/x"])
def test_head_is_answered_like_get_without_the_body(one_api: Api, path: str) -> None:
    known = {"Authorization": f"Bearer {BOOTSTRAP}"}
    for headers in (known, {}):
        url = f"{one_api.url}/api/v1{path}"
        got = httpx2.get(url, headers=headers | {"X-Request-Id": "same"}, trust_env=False, verify=False)
        head = httpx2.head(url, headers=headers | {"X-Request-Id": "same"}, trust_env=False, verify=False)
        assert (head.status_code, head.content) == (got.status_code, b"")
        names = ("content-type", "content-length", "x-request-id", "cache-control")
        assert [head.headers.get(name) for name in names] == [got.headers.get(name) for name in names]


def test_head_of_a_stream_ends_with_its_head(one_api: Api) -> None:
    one_api.submit("T-followed")
    with httpx2.Client(base_url=f"{one_api.url}/api/v1", trust_env=False, verify=False, timeout=20) as client:
        client.headers["Authorization"] = f"Bearer {BOOTSTRAP}"
        head = client.head("/tasks/T-followed/stream")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"].startswith("text/event-stream")
        assert client.get("/me").status_code == 200  # on the same connection


@pytest.mark.parametrize("raw", [b"", b" \n "])
@pytest.mark.parametrize(
    "path", ["/tasks", "/tasks/bulk", "/types", "/keys", "/users", "/claims", "/schedules", "/operations/1/resolve"]
)
def test_an_empty_body_is_said_to_be_empty(one_api: Api, path: str, raw: bytes) -> None:
    answer = one_api.post(path, content=raw)
    assert answer.status_code in (400, 422)
    assert "empty" in answer.json()["message"]


WRONG_BODIES = [
    ("/keys", {"admin"}),
    ("/users", {"admin"}),
    ("/types", {"admin"}),
    ("/connections", {"admin"}),
    ("/schedules", {"admin"}),
    ("/operations/1/resolve", {"review", "admin"}),
    ("/reviews/1/decision", {"review", "admin"}),
    ("/claims", {"work", "admin"}),
    ("/tasks", {"submit", "admin"}),
]


@pytest.mark.parametrize("scope", ["submit", "read", "work", "review", "admin"])
def test_who_may_not_is_told_so_before_anything_is_said_about_his_body(api: Api, scope: str) -> None:
    key = api.as_key(scope)
    for path, scopes in WRONG_BODIES:
        for body in ({"colour": "red"}, []):
            assert key.post(path, json=body).status_code == (422 if scope in scopes else 403), path
    assert key.patch("/queue", json={"colour": "red"}).status_code == (422 if scope == "admin" else 403)


def test_a_request_has_an_id_and_may_bring_its_own(one_api: Api) -> None:
    assert one_api.get("/me", headers={"X-Request-Id": "n8n.exec-7_a"}).headers["x-request-id"] == "n8n.exec-7_a"
    for bad in ("", "a b", "x" * 101, "<script>"):
        own = one_api.get("/me", headers={"X-Request-Id": bad}).headers["x-request-id"]
        assert own != bad
        assert len(own) == 16
    assert one_api.get("/nope", headers={"X-Request-Id": "mine"}).json()["request_id"] == "mine"


def test_a_trailing_slash_is_accepted_without_a_redirect(api: Api) -> None:
    assert api.post("/tasks/", json={"type": "trial", "task_id": "T-1"}).status_code == 201
    assert api.get("/tasks/T-1/").json()["task_id"] == "T-1"
    assert api.post("/tasks/T-1/cancel/").json()["status"] == "cancelled"
    assert api.get("/tasks/?limit=1").json()["data"][0]["task_id"] == "T-1"


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/tasks?limit=0", "limit"),
        ("/tasks?limit=201", "limit"),
        ("/tasks?limit=99999999999999999999999", "limit"),
        ("/tasks?limit=ten", "limit"),
        ("/tasks?cursor=nope", "cursor"),
        ("/tasks?sort=colour", "sort"),
        ("/tasks?sort=-", "sort"),
        ("/tasks?sort=title,type,status,task_id", "sort"),
        ("/tasks?status=finished", "status"),
        ("/tasks?status=done,nope", "status"),
        ("/tasks?priority=P9", "priority"),
        ("/tasks?priority=high", "priority"),
        ("/tasks?created_from=yesterday", "created_from"),
        ("/tasks?created_from=2026-01-01T00:00:00", "created_from"),
        ("/tasks?created_to=5", "created_to"),
        ("/tasks?q=%00", "q"),
        ("/tasks?source=a%00", "source"),
        ("/tasks?task_id=a%00", "task_id"),
        ("/tasks?stat=done", "stat"),
        ("/tasks/T-1?wait=61", "wait"),
        ("/tasks/T-1?wait=-1", "wait"),
        ("/tasks/T-1?wait=nan", "wait"),
        ("/tasks/T-1?wait=long", "wait"),
        ("/tasks/T-1/events?cursor=x", "cursor"),
        ("/tasks/T-1/events?cursor=99999999999999999999", "cursor"),
        ("/tasks/T-1/events?cursor=%C2%B2", "cursor"),
        ("/reviews?status=lost", "status"),
        ("/reviews?mine=perhaps", "mine"),
        ("/reviews?limit=201", "limit"),
    ],
)
def test_a_parameter_that_does_not_fit_is_named(one_api: Api, path: str, field: str) -> None:
    one_api.submit("T-1")
    answer = one_api.get(path)
    assert answer.status_code == 422
    assert answer.json()["details"][0]["field"] == field
    assert field in answer.json()["message"]


def test_an_empty_parameter_is_none(one_api: Api) -> None:
    one_api.submit("T-1")
    empty = "status=&type=&priority=&q=&tag=&source=&created_from=&created_to=&sort=&cursor="
    assert one_api.get(f"/tasks?{empty}").json()["data"]


def test_an_error_of_ours_says_nothing_about_itself(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(api.board.intake, "prepare", broken, raising=False)
    answer = api.post("/tasks", json={"type": "trial"}, headers={"X-Request-Id": "r-1"})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert answer.json()["request_id"] == answer.headers["x-request-id"] == "r-1"
    assert "secret" not in answer.text
    with_cause = [record for record in caplog.records if record.levelno == logging.ERROR and record.exc_info]
    assert any("r-1" in record.getMessage() for record in with_cause)
    caplog.clear()


# -- IDs in paths (B099) --------------------------------------------------------------------------------------------


ODD_IDS = ["bulk", "events", "a;b", "a+b", "a:b@c", "~!$&'()*,=", "a.b.", "...", "é", "bulk-actions"]


def test_an_id_is_found_again_or_refused(api: Api) -> None:
    for task_id in [*IDS, *ODD_IDS, "'; DROP TABLE tasks; --", "线索 1"]:
        made = api.post("/tasks", json={"type": "trial", "task_id": task_id})
        if made.status_code == 422:
            assert made.json()["details"][0]["field"] == "task_id"
            assert set(task_id) & set("/?#%") or task_id in (".", "..")
            continue
        stored = made.json()["task_id"]
        path = quote(task_id, safe="")
        assert api.get(f"/tasks/{path}").json()["task_id"] == stored
        assert [task["task_id"] for task in api.get("/tasks", params={"task_id": task_id}).json()["data"]] == [stored]
        assert api.get(made.json()["links"]["self"].partition("/api/v1")[2]).json()["task_id"] == stored
        assert api.get(f"/tasks/{path}/events").json()["data"][0]["kind"] == "created"
        assert api.post(f"/tasks/{path}/cancel").json()["status"] == "cancelled"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/tasks/%2F"),
        ("GET", "/tasks/a%2Fevents"),
        ("POST", "/tasks/a%2fcancel"),
        ("POST", "/tasks/a%2Fcancel/"),
        ("GET", "/tasks%2Fa"),
        ("GET", "/tasks/x%2F..%2Fa"),
        ("GET", "/tasks//a"),
        ("GET", "/tasks/a//events"),
        ("GET", "/tasks/a%3Fwait=1"),
        ("GET", "/tasks/a%00"),
        ("GET", "/tasks/%ff"),
        ("GET", "/tasks/a%252Fevents"),
    ],
)
def test_an_encoded_slash_leads_to_no_other_route(one_api: Api, method: str, path: str) -> None:
    one_api.submit("a")
    answer = one_api.request(method, path)
    assert answer.status_code in (404, 405)
    assert one_api.task("a")["status"] == "pending"


def test_an_id_in_another_writing_is_the_same_task(api: Api) -> None:
    api.submit("INV 7")
    for written in ("INV%207", "%20INV%20%207%20", "INV%097", "INV%0A7"):
        assert api.get(f"/tasks/{written}").json()["task_id"] == "INV 7"
        assert len(api.get(f"/tasks?task_id={written}").json()["data"]) == 1
    for unknown in ("", "inv%207", "a%2Fb", "..", "INV"):
        assert api.get(f"/tasks?task_id={unknown}").json()["data"] == []
