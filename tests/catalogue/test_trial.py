"""Looking at a connection: by the API, on the page, by `board doctor`; with the stand-in for Dify at the other end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from integrations.demo.dify_app import create_app
from tests.api.conftest import Api, open_api  # noqa: F401 - a fixture
from tests.rig.asgi import serve


@pytest.fixture(scope="module")
def dify() -> Iterator[str]:
    with serve(create_app()) as base:
        yield f"{base}/v1"


@pytest.fixture
def api(open_api: Any, dify: str) -> Api:  # noqa: F811
    api: Api = open_api()
    connections = [
        {"name": "good", "kind": "dify", "url": dify, "key": "app-demo-leads"},
        {"name": "bad", "kind": "dify", "url": dify, "key": "app-of-nobody-0123456789"},
        {"name": "hook", "kind": "webhook", "url": "https://n8n.example.org/webhook/x"},
    ]
    lead = {"use": "dify.workflow", "connection": "good", "inputs": {"txt": "{{ payload.text }}"}}
    api.types({"name": "lead", "handler": lead}, connections=connections)
    return api


def findings(api: Api, name: str) -> tuple[bool, list[tuple[str, str]]]:
    answer = api.post(f"/connections/{name}/test")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["name"] == name
    return body["works"], [(it["status"], it["message"]) for it in body["findings"]]


def test_what_is_wrong_is_said_in_plain_words_and_nothing_is_started(api: Api) -> None:
    works, found = findings(api, "good")
    assert not works
    assert found[0] == ("ok", "Dify answers, version 1.14.2.")
    assert found[1][1].startswith("The key opens the workflow “Leads (Demo stand-in)” (use dify.workflow).")
    assert found[2:] == [
        ("wrong", "Type lead: the app's start form has no field “txt”."),
        ("wrong", "Type lead: `inputs` lack “text”, which the app's start form requires."),
    ]
    good = {"use": "dify.workflow", "connection": "good", "inputs": {"text": "{{ payload.text }}"}}
    api.types({"name": "lead", "handler": good})
    assert findings(api, "good")[0]


def test_a_wrong_key_is_told_and_never_shown(api: Api) -> None:
    works, found = findings(api, "bad")
    assert not works
    assert found[-1][0] == "wrong"
    assert "check `key` in the settings of the connection “bad”" in found[-1][1]
    assert "0123456789" not in str(found)


def test_other_kinds_unknown_names_and_who_may(api: Api) -> None:
    assert findings(api, "hook") == (
        True,
        [("warning", "A connection of kind webhook cannot be tried without sending something.")],
    )
    assert api.post("/connections/nobody/test").json()["code"] == "connection_not_found"
    assert api.as_key("read").post("/connections/good/test").status_code == 403


def test_an_address_that_leads_nowhere(api: Api) -> None:
    api.types(connections=[{"name": "gone", "kind": "dify", "url": "http://127.0.0.1:9/v1", "key": "app-x-12345678"}])
    works, [(status, message)] = findings(api, "gone")
    assert (works, status) == (False, "wrong")
    assert "cannot be reached" in message
