"""Whatever JSON comes: it is taken or refused in plain words, and never breaks anything."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.conftest import Api

SETTINGS = settings(
    max_examples=100, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**15, 10**40)
    | st.floats()
    | st.text()
    | st.sampled_from(["", "\x00", "\ud800", "P1", "trial", "return", "2030-01-01T00:00:00Z", "http://[", "{{ x }}"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = ["task_id", "title", "priority", "payload", "source", "origin", "callback_url", "run_after", "deadline_at"]
FIELDS += ["due_at", "max_retries", "tags", "needs", "fields", "note", "on_duplicate", "Idempotency-Key", "colour"]
FILTERS = ["status", "type", "priority", "q", "tag", "source", "task_id", "created_from", "created_to", "sort", "limit"]
PARTS = ["name", "title", "task_id", "priority", "handler", "review", "retry"]
KEYS = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
BODIES = st.fixed_dictionaries({"type": st.just("trial") | ANY}, optional=dict.fromkeys(FIELDS, ANY))


def said(answer: Any) -> None:
    assert answer.status_code in (200, 201, 400, 409, 422), answer.text
    if answer.status_code == 422:
        assert answer.json()["details"][0]["field"]


@SETTINGS
@given(body=BODIES | ANY)
def test_any_body_of_a_task(one_api: Api, body: Any) -> None:
    answer = one_api.post("/tasks", content=json.dumps(body).encode())
    said(answer)
    if answer.status_code == 201:
        task = answer.json()
        back = one_api.get("/tasks", params={"task_id": task["task_id"]}).json()["data"]
        assert [item["payload"] for item in back] == [body.get("payload", {})]


@SETTINGS
@given(
    payload=st.dictionaries(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")), ANY)
)
def test_a_payload_that_is_taken_comes_back_as_it_was(one_api: Api, payload: dict[str, Any]) -> None:
    answer = one_api.post("/tasks", content=json.dumps({"type": "trial", "payload": payload}).encode())
    said(answer)
    if answer.status_code == 201:
        assert json.dumps(answer.json()["payload"]) == json.dumps(payload)


@SETTINGS
@given(raw=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes(one_api: Api, raw: bytes) -> None:
    for path in ("/tasks", "/tasks/bulk", "/types"):
        assert one_api.post(path, content=raw).status_code in (400, 422)


@SETTINGS
@given(items=st.lists(BODIES | ANY, min_size=1, max_size=6))
def test_any_batch(one_api: Api, items: list[Any]) -> None:
    answer = one_api.post("/tasks/bulk", content=json.dumps({"tasks": items}).encode())
    assert answer.status_code == 200, answer.text
    assert [item["index"] for item in answer.json()["data"]] == list(range(len(items)))


@SETTINGS
@given(edit=st.dictionaries(st.sampled_from([*FIELDS, "version", "assignee"]), ANY), data=st.data())
def test_any_edit(one_api: Api, edit: dict[str, Any], data: st.DataObject) -> None:
    version = one_api.submit("edited")["version"]
    if data.draw(st.booleans()):
        edit["version"] = version
    answer = one_api.patch("/tasks/edited", content=json.dumps(edit).encode())
    said(answer)
    assert one_api.task("edited")["version"] == version + (answer.is_success and answer.json()["version"] > version)


@SETTINGS
@given(
    names=st.dictionaries(
        st.sampled_from(
            [
                "status",
                "type",
                "priority",
                "q",
                "tag",
                "source",
                "task_id",
                "created_from",
                "created_to",
                "sort",
                "limit",
                "cursor",
            ]
        ),
        st.text(max_size=20) | st.sampled_from(["done", "P1", "-title", "5", "2026-01-01T00:00:00Z", "%", "_", "\\"]),
    )
)
def test_any_filter(one_api: Api, names: dict[str, str]) -> None:
    try:
        answer = one_api.get("/tasks", params=names)
    except UnicodeEncodeError:  # half a surrogate pair cannot be sent in an address
        return
    assert answer.status_code in (200, 422), answer.text


@SETTINGS
@given(types=st.lists(st.dictionaries(st.sampled_from(PARTS), ANY)))
def test_any_type(one_api: Api, types: list[Any]) -> None:
    answer = one_api.post("/types", content=json.dumps({"types": types}).encode())
    assert answer.status_code in (200, 422), answer.text
