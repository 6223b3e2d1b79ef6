"""JSON at the door, and the cleaning of what nobody can refuse: output of models and files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from board.db.types import dump_json
from board.tasks.text import MAX_DEPTH, BadJson, NotJson, check, clean, parse

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=15,
)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_depth_up_to_the_limit() -> None:
    assert parse(json.dumps(nested(MAX_DEPTH)).encode()) == nested(MAX_DEPTH)
    with pytest.raises(BadJson, match=f"nested deeper than {MAX_DEPTH} levels"):
        parse(json.dumps(nested(MAX_DEPTH + 1)).encode())


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"{} {}", b"nan", b"'a'"])
def test_what_is_no_json(raw: bytes) -> None:
    with pytest.raises(NotJson):
        parse(raw)


@given(value=ANY)
def test_what_is_taken_can_be_stored_and_comes_back(value: Any) -> None:
    try:
        taken = parse(json.dumps(value).encode())
    except BadJson as refused:
        f"{refused.path} {refused}".encode()
        return
    assert json.dumps(json.loads(dump_json(taken))) == json.dumps(value)
    assert "\0" not in dump_json(taken)


@given(value=ANY)
def test_what_is_cleaned_can_be_stored(value: Any) -> None:
    cleaned = clean(value)
    check(cleaned)
    dump_json(cleaned).encode()


def test_cleaning_shows_that_something_was_there() -> None:
    assert clean({"a\0": ["b\ud800", float("nan"), float("inf"), 1.5]}) == {"a�": ["b�", None, None, 1.5]}


@pytest.mark.parametrize("value", ["plain", "schön", {"a": ["b", 1.5, None, {"c": True}]}, [], {}, 7])
def test_what_needs_no_cleaning_is_the_very_object(value: Any) -> None:
    assert clean(value) is value


@pytest.mark.parametrize("value", [{"a": [{"b": "x\0"}]}, {"a\ud800": 1}, [float("nan")]])
def test_what_is_cleaned_is_a_new_object_and_the_given_one_stays(value: Any) -> None:
    before = repr(value)
    assert clean(value) is not value
    assert repr(value) == before
