"""What cannot be a task is refused at the door, naming the field, and leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import Api, OpenApi
from tests.api.test_create import count

CASES = Path(__file__).parent.parent / "data/cases"


# -- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"type": None}, "type"),
        ({"type": "nope"}, "type"),
        ({"type": 5}, "type"),
        ({"title": 5}, "title"),
        ({"title": "x" * 1001}, "title"),
        ({"priority": "P4"}, "priority"),
        ({"priority": 1}, "priority"),
        ({"payload": []}, "payload"),
        ({"payload": "text"}, "payload"),
        ({"payload": None}, "payload"),
        ({"source": {}}, "source"),
        ({"origin": {"system": "n8n", "colour": "red"}}, "origin.colour"),
        ({"origin": "n8n"}, "origin"),
        ({"callback_url": "ftp://example.org"}, "callback_url"),
        ({"callback_url": "example.org/x"}, "callback_url"),
        ({"callback_url": "https://example.org/" + "x" * 5000}, "callback_url"),
        ({"run_after": "2030-01-01T00:00:00"}, "run_after"),
        ({"run_after": "2030-01-01"}, "run_after"),
        ({"run_after": 1893456000}, "run_after"),
        ({"run_after": "1893456000"}, "run_after"),
        ({"run_after": "soon"}, "run_after"),
        ({"run_after": "0001-01-01T00:00:00+14:00"}, "run_after"),
        ({"due_at": "9999-12-31T23:59:59-14:00"}, "due_at"),
        ({"max_retries": -1}, "max_retries"),
        ({"max_retries": 101}, "max_retries"),
        ({"max_retries": 10**30}, "max_retries"),
        ({"max_retries": 1.5}, "max_retries"),
        ({"tags": "a"}, "tags"),
        ({"tags": ["a", 1]}, "tags.1"),
        ({"tags": [""]}, "tags.0"),
        ({"tags": ["x"] * 51}, "tags"),
        ({"note": "x" * 10_001}, "note"),
        ({"on_duplicate": "replace"}, "on_duplicate"),
        ({"dedup_id": "x"}, "dedup_id"),
        ({"Payload": {}}, "Payload"),
        ({"status": "done"}, "status"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_field_that_does_not_fit_is_named(one_api: Api, change: dict[str, Any], field: str) -> None:
    before = count(one_api)
    answer = one_api.post("/tasks", json={"type": "trial", "task_id": "T-1"} | change)
    assert answer.status_code == 422
    assert answer.json()["details"][0]["field"] == field
    assert field in answer.json()["message"]
    assert count(one_api) == before


@pytest.mark.parametrize(
    ("field", "value"),
    [("needs", ["T-0"]), ("fields", {"region": "EU"}), ("needs", "T-0")],
)
def test_what_is_not_built_yet_is_said_and_never_ignored(one_api: Api, field: str, value: Any) -> None:
    answer = one_api.post("/tasks", json={"type": "trial", field: value})
    assert (answer.status_code, answer.json()["code"]) == (422, "not_supported")
    assert "not yet supported" in answer.json()["message"]
    assert answer.json()["details"][0]["field"] == field
    assert (
        one_api.post("/tasks", json={"type": "trial", "needs": [], "fields": {}, "deadline_at": None}).status_code
        == 201
    )


def test_a_payload_is_checked_against_the_schema_of_its_type(api: Api) -> None:
    schema = {
        "type": "object",
        "required": ["items"],
        "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}, "n": {"multipleOf": 0.5}},
        "$defs": {"item": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
    }
    api.types({"name": "strict", "handler": {"use": "echo"}, "payload_schema": schema})
    good = api.post("/tasks", json={"type": "strict", "payload": {"items": [{"name": "a"}]}})
    assert good.status_code == 201
    for payload, field in [
        ({}, "payload"),
        ({"items": [{"name": "a"}, {"name": 1}]}, "payload.items[1].name"),
        ({"items": [{}]}, "payload.items[0]"),
        ({"items": [], "n": 0.3}, "payload.n"),
        ({"items": [], "n": 10**400}, "payload"),
    ]:
        answer = api.post("/tasks", json={"type": "strict", "payload": payload})
        assert (answer.status_code, answer.json()["code"]) == (422, "payload_invalid")
        assert answer.json()["details"][0]["field"] == field


# -- odd JSON -----------------------------------------------------------------------------------------------------


DEEP = '{"a":'


def raw(api: Api, text: str | bytes) -> Any:
    return api.post("/tasks", content=text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize(
    ("name", "field"),
    [("d_nan", "payload.score"), ("d_infinity", "payload.score"), ("d_lone_surrogate", "title"), ("d_nul", "title")],
)
def test_recorded_bad_bodies_name_their_field(one_api: Api, name: str, field: str) -> None:
    """B095, B097."""
    before = count(one_api)
    text = (CASES / f"payloads/{name}.json").read_text(encoding="utf-8").replace('"dedup_id"', '"task_id"')
    answer = raw(one_api, text.replace("{", '{"type":"trial",', 1))
    assert answer.status_code == 422
    assert answer.json()["details"][0]["field"] == field
    assert count(one_api) == before


def test_long_numbers_are_kept_digit_for_digit(api: Api) -> None:
    text = (CASES / "payloads/d_big_id.json").read_text(encoding="utf-8").replace('"dedup_id"', '"task_id"')
    assert raw(api, text.replace("{", '{"type":"trial",', 1)).status_code == 201
    assert '"memory_id":653247040368672768}' in api.get("/tasks/N-3").text
    assert '"memory_id":653247040368672768}' in api.get("/tasks").text
    long = "9" * 4300
    assert raw(api, f'{{"type":"trial","task_id":"N-4","payload":{{"n":-{long}}}}}').status_code == 201
    assert f'"n":-{long}' in api.get("/tasks/N-4").text


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ('{"a":{"b":[1,NaN]}}', "payload.a.b[1]"),
        ('{"n":1e400}', "payload.n"),
        ('{"n":-1e999}', "payload.n"),
        (f'{{"n":{"9" * 4301}}}', "payload.n"),
        ('{"k\\u0000":1}', "payload"),
        ('{"k\\ud83d":1}', "payload"),
        ('{"k":"\\udc00\\ud800"}', "payload.k"),
        ('{"k":["ok","\\u0000"]}', "payload.k[1]"),
        (f'{{"k":{"[" * 100}1{"]" * 100}}}', "payload.k"),
        (f'{{"k":{DEEP * 100}1{"}" * 100}}}', "payload.k"),
        (f'{{"k":{"[" * 100_000}1{"]" * 100_000}}}', "body"),
    ],
    ids=lambda text: text[:24],
)
def test_json_that_cannot_be_kept_names_its_place(one_api: Api, payload: str, field: str) -> None:
    before = count(one_api)
    answer = raw(one_api, f'{{"type":"trial","payload":{payload}}}')
    assert answer.status_code == 422
    assert answer.json()["details"][0]["field"].startswith(field)
    assert count(one_api) == before


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "nope",
        '{"type":"trial",}',
        "{'type':'trial'}",
        b"\xff\xfe",
        b'{"type":"\xe4"}',
        "type=trial",
        "[1",
        "\ufeff",
    ],
    ids=repr,
)
def test_what_is_no_json_is_400(one_api: Api, text: str | bytes) -> None:
    answer = raw(one_api, text)
    # An empty body is no JSON either, but a missing one.
    assert (answer.status_code, answer.json()["code"]) in ((400, "invalid_json"), (422, "invalid_field"))
    assert (answer.status_code == 422) == (text == "")


@pytest.mark.parametrize("text", ["null", "[]", "5", '"text"', "true", '[{"type":"trial"}]'])
def test_json_that_is_no_object_is_422(one_api: Api, text: str) -> None:
    answer = raw(one_api, text)
    assert (answer.status_code, answer.json()["message"]) == (422, "body: must be a JSON object.")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"payload": []}, "payload: must be a JSON object."),
        ({"origin": "n8n"}, "origin: must be a JSON object."),
        (
            {"run_after": "2030-01-01T00:00:00"},
            "run_after: write a time with its zone, such as 2026-11-30T09:00:00+08:00.",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_shape_is_told_in_words_of_json(one_api: Api, change: dict[str, Any], message: str) -> None:
    assert one_api.post("/tasks", json={"type": "trial", "task_id": "T-1"} | change).json()["message"] == message


def test_a_byte_order_mark_and_any_content_type_are_accepted(one_api: Api) -> None:
    text = '{"type":"trial","task_id":"BOM"}'
    assert raw(one_api, b"\xef\xbb\xbf" + text.encode()).status_code == 201
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        assert one_api.post("/tasks", content=text, headers={"Content-Type": kind}).status_code == 200


def test_of_a_key_that_stands_twice_the_last_value_counts(one_api: Api) -> None:
    task = raw(one_api, '{"type":"nope","type":"trial","task_id":"a","task_id":"b","payload":{"n":1,"n":2}}').json()
    assert (task["task_id"], task["payload"]) == ("b", {"n": 2})


def test_the_body_limit_holds_to_the_byte(open_api: OpenApi) -> None:
    """B007, for JSON."""
    api = open_api(max_json="1KB")

    def body(size: int) -> str:
        frame = '{"type":"trial","task_id":"T-%d","payload":{"x":"%s"}}'
        return frame % (size, "x" * (size - len(frame % (size, ""))))

    assert len(body(1024)) == 1024
    assert raw(api, body(1024)).status_code == 201
    over = raw(api, body(1025))
    assert (over.status_code, over.json()["code"]) == (413, "json_too_large")
    assert "1024 bytes (BOARD_MAX_JSON)" in over.json()["message"]
    assert raw(api, '{"type":"trial","payload":{"image":"' + "A" * 20_000_000 + '"}}').status_code == 413
    assert count(api) == 1


# -- callback addresses -------------------------------------------------------------------------------------------

URLS = json.loads((CASES / "web/callback_urls.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("url", URLS["must_be_refused_unless_allow_listed"])
def test_callback_addresses_that_are_refused(one_api: Api, url: str) -> None:
    before = count(one_api)
    answer = one_api.post("/tasks", json={"type": "trial", "callback_url": url})
    assert answer.status_code == 422
    assert answer.json()["details"][0]["field"] == "callback_url"
    assert "pw" not in answer.text
    assert count(one_api) == before


def test_the_allow_list_opens_host_and_port_and_nothing_else(
    open_api: OpenApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ipaddress

    from board.effects import guard

    real = guard.resolve
    private = [ipaddress.ip_address("10.1.2.3")]
    monkeypatch.setattr(guard, "resolve", lambda host, port: private if "internal" in host else real(host, port))
    api = open_api(allow_private_targets=["n8n.internal:5678", "127.0.0.1"])

    def status(url: str) -> int:
        return api.post("/tasks", json={"type": "trial", "callback_url": url}).status_code

    assert status("http://n8n.internal:5678/webhook/x") == 201
    assert status("http://N8N.internal:5678/webhook/x") == 201
    assert status("http://n8n.internal:6379/") == 422
    assert status("http://other.internal:5678/") == 422
    assert status("http://127.0.0.1:9/hook") == 201
    assert status("http://user:pw@127.0.0.1:9/hook") == 422
    assert status("http://169.254.169.254/latest/") == 422
