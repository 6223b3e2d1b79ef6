"""Applying types and connections: all of a file or nothing, the same twice changes nothing, secrets stay secret."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select, text

from board.catalogue import store
from board.catalogue.apply import Applied, BadCatalogue, apply, parse
from board.catalogue.models import task_types
from board.rooms import Board
from tests.catalogue.conftest import Apply

HOOK = {"name": "hook", "kind": "webhook", "url": "https://n8n.example.org/webhook/x", "secret": "s3cret-text"}
TRIAL = {"name": "trial", "handler": {"use": "echo"}}


def rows(board: Board) -> tuple[list[str], list[str]]:
    with board.db.read() as connection:
        types = [f"{row['name']}@{row['version']}" for row in store.list_types(connection)]
        return types, [f"{row['name']}@{row['version']}" for row in store.list_connections(connection)]


def test_the_same_again_changes_nothing(board: Board, put: Apply) -> None:
    assert put(types=[TRIAL], connections=[HOOK]) == Applied(created=["connection hook", "type trial"])
    assert put(types=[TRIAL], connections=[HOOK]) == Applied(unchanged=["connection hook", "type trial"])
    assert rows(board) == (["trial@1"], ["hook@1"])
    changed = put(types=[TRIAL | {"title": "New"}], connections=[HOOK | {"secret": "other"}])
    assert changed == Applied(updated=["connection hook", "type trial"])
    assert rows(board) == (["trial@2"], ["hook@2"])
    assert put(connections=[HOOK | {"secret": "other"}]) == Applied(unchanged=["connection hook"])
    with board.db.read() as connection:
        old = board.catalogue.version(connection, "trial", 1).spec
        new = board.catalogue.current(connection, "trial")
    assert (old.title, new.version, new.spec.title) == (None, 2, "New")


def test_rules_that_are_none_are_taken_with_a_warning(put: Apply) -> None:
    applied = put(types=[TRIAL | {"review": {"when": "rules"}}, TRIAL | {"name": "other"}])
    assert applied.created == ["type trial", "type other"]
    said = "The type trial says `review: {when: rules}` and has no rules, so nobody is asked by it."
    assert applied.warnings == [said]


@pytest.mark.parametrize("bad", [{"name": "bad"}, {"name": "bad", "handler": {"use": "echo"}, "colour": 1}])
def test_nothing_of_a_bad_file_is_applied(board: Board, put: Apply, bad: dict[str, Any]) -> None:
    with pytest.raises(BadCatalogue):
        put(types=[TRIAL, bad], connections=[HOOK])
    assert rows(board) == ([], [])


def test_every_fault_of_a_file_is_told_with_its_path(put: Apply) -> None:
    with pytest.raises(BadCatalogue) as refused:
        put(
            types=[
                {"name": "a b", "handler": {"use": "echo"}},
                TRIAL | {"retry": {"max": -1, "base": "5 parsec", "rules": [{"when": {}, "class": "odd"}]}},
                TRIAL,
                TRIAL,
                {"name": "x", "handler": {"use": "dify.workflow", "connection": "nowhere"}},
            ],
            connections=[HOOK | {"kind": "carrier"}, HOOK | {"url": "ftp://x"}],
        )
    paths = [path for path, _ in refused.value.problems]
    assert paths == [
        "connections[0].kind",
        "connections[1].url",
        "types[0].name",
        "types[1].retry.max",
        "types[1].retry.base",
        "types[1].retry.rules[0].class",
        "types[3].name",
        "types[4].handler.connection",
    ]


def test_a_type_may_use_a_connection_of_the_same_file(board: Board, put: Apply) -> None:
    acts = TRIAL | {"action": {"use": "webhook", "connection": "hook"}}
    with pytest.raises(BadCatalogue, match="does not exist"):
        put(types=[acts])
    put(types=[acts], connections=[HOOK])
    assert rows(board) == (["trial@1"], ["hook@1"])


def test_writers_at_once_make_one_version_each(board: Board) -> None:
    def write(number: int) -> None:
        with board.db.write() as tx:
            data = {"types": [TRIAL | {"title": f"by {number}"}]}
            apply(tx, data, handlers=board.handlers, vault=board.vault, author="key:test")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(16)))
    with board.db.read() as connection:
        query = select(task_types.c.version, task_types.c.current).order_by(task_types.c.version)
        stored = [(row.version, row.current) for row in connection.execute(query)]
    assert stored == [(number, number == 16) for number in range(1, 17)]


# -- files --------------------------------------------------------------------------------------------------------


def test_a_file_is_filled_from_the_environment() -> None:
    data = parse("connections: [{name: d, key: '${KEY}', url: 'https://${HOST}/v1'}]", {"KEY": "k", "HOST": "h"})
    assert data["connections"] == [{"name": "d", "key": "k", "url": "https://h/v1"}]
    with pytest.raises(BadCatalogue) as refused:
        parse("connections: [{key: '${NO_KEY}'}]\ntypes: [{title: 'a ${NO_TITLE} b'}]", {})
    assert refused.value.problems == [
        ("connections[0].key", "the environment variable NO_KEY is not set"),
        ("types[0].title", "the environment variable NO_TITLE is not set"),
    ]
    assert parse("types: [{name: '$X ${ {} {{ y }}'}]", {})["types"] == [{"name": "$X ${ {} {{ y }}"}]


def test_yaml_means_what_its_json_would_mean() -> None:
    words = "{date: 2026-01-01, clock: 19:00, no: no, yes: on, oct: 010, n: 7, f: 1.5, e: 1e3, t: true, z: null, x: }"
    (item,) = parse(f"types: [{words}]", {})["types"]
    assert item == {
        "date": "2026-01-01",
        "clock": "19:00",
        "no": "no",
        "yes": "on",
        "oct": "010",
        "n": 7,
        "f": 1.5,
        "e": 1000.0,
        "t": True,
        "z": None,
        "x": None,
    }
    assert parse("types: [&a {x: 1}, {<<: *a, y: 2}]", {})["types"][1] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("", "must be an object with the keys"),
        ("- a", "must be an object with the keys"),
        ("typos: []", "must be an object with the keys"),
        ("types: {a: b}", "must be a list"),
        ("types: [", "line 1"),
        ("types:\n- name: a\n  name: b", "“name” stands twice, line 3"),
        ("types: [{1: x}]", "is not text"),
        ("types: [{a: !!binary aGk=}]", "binary"),
        ("types: [{a: !!python/object:os.system x}]", "python"),
        ("types: [&a {x: *a}]", "refers to itself"),
        ("types: " + "[" * 3000, "nested too deep"),
        ("types: [{a: \x07}]", "U+0007"),
    ],
)
def test_a_file_that_cannot_be_read(yaml: str, said: str) -> None:
    with pytest.raises(BadCatalogue) as refused:
        parse(yaml, {})
    assert said in str(refused.value)


def test_a_fault_in_a_file_never_shows_its_keys() -> None:
    with pytest.raises(BadCatalogue) as refused:
        parse('connections: [{key: "app-verysecret", url: [}]', {})
    assert "verysecret" not in str(refused.value)


@pytest.mark.parametrize("value", ["a\0b", "\ud800", float("nan"), float("inf")])
def test_what_cannot_be_stored_is_refused_with_its_place(put: Apply, value: Any) -> None:
    with pytest.raises(BadCatalogue) as refused:
        put(types=[TRIAL | {"handler": {"use": "echo", "inputs": {"x": [value]}}}])
    assert refused.value.problems[0][0] == "types[0].handler.inputs.x[0]"


# -- secrets ------------------------------------------------------------------------------------------------------

SECRETS = {"app-7key", "s3cret-text", "s3cret-old", "Tok-en", "pass-word", "jwt-key"}
WITH_SECRETS = [
    {"name": "d", "kind": "dify", "url": "https://dify.example.org/v1", "key": "app-7key"},
    HOOK,
    HOOK | {"name": "h", "auth": {"header": {"X-Token": "Tok-en"}}},
    HOOK | {"name": "b", "auth": {"basic": {"user": "n8n", "password": "pass-word"}}, "idempotent": True},
    HOOK | {"name": "j", "secret": ["s3cret-text", "s3cret-old"], "auth": {"jwt": {"secret": "jwt-key"}}},
]


def test_secrets_are_encrypted_and_shown_to_nobody(board: Board, put: Apply, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        put(connections=WITH_SECRETS)
        with board.db.read() as connection:
            shown = [store.shown_connection(row) for row in store.list_connections(connection)]
            stored = str(connection.execute(text("SELECT * FROM connections")).all())
            opened = board.catalogue.open_connection(connection, "h")
    assert not any(secret in stored + str(shown) + caplog.text for secret in SECRETS)
    assert all(item["has_secrets"] for item in shown)
    assert opened is not None
    assert opened.secrets == {"secret": "s3cret-text", "auth": {"header": {"X-Token": "Tok-en"}}}
    assert not any(secret in repr(opened) for secret in SECRETS)


def test_a_fault_in_a_connection_never_shows_its_secrets(put: Apply) -> None:
    for change in (
        {"kind": "dify"},
        {"url": "x"},
        {"colour": "red"},
        {"auth": {"jwt": {"secret": "Tok-en", "claims": {"exp": 1}}}},
        {"secret": ["whsec_s3cret-text", "s3cret-text"]},
    ):
        with pytest.raises(BadCatalogue) as refused:
            put(connections=[HOOK | {"key": "app-7key"} | change])
        assert not any(secret in str(refused.value) for secret in SECRETS)
