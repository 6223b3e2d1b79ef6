"""Values as models and Dify send them, read."""

from __future__ import annotations

from typing import Any

import pytest

from board.api.errors import ApiError
from board.tools.arguments import Argument, Kind, read

ARGUMENTS = (
    Argument("name", "A name.", required=True),
    Argument("how", "How.", Kind.CHOICE, choices=("P0", "P1")),
    Argument("tags", "Tags.", Kind.LIST),
    Argument("states", "States.", Kind.LIST, choices=("done", "failed")),
    Argument("seconds", "Seconds.", Kind.NUMBER),
    Argument("payload", "Fields.", Kind.OBJECT),
    Argument("result", "Any.", Kind.VALUE),
)


def test_empty_text_and_null_mean_that_nothing_was_given() -> None:
    empty = dict.fromkeys(("how", "tags", "states", "seconds", "payload_json", "result_json"), "")
    for nothing in (empty, dict.fromkeys(empty), dict.fromkeys(empty, "  \n")):
        given = read(ARGUMENTS, {"name": "x", **nothing})
        assert given.text("how") is None
        assert given.names("tags") == given.names("states") == []
        assert given.number("seconds") is None
        assert given.object("payload") == {}
        assert not given.has("result")


@pytest.mark.parametrize(
    ("raw", "name", "value"),
    [
        ({"payload_json": '{"a": [1, null]}'}, "payload", {"a": [1, None]}),
        ({"payload_json": {"a": 1}}, "payload", {"a": 1}),
        ({"payload": {"a": 1}}, "payload", {"a": 1}),
        ({"result_json": "[1, 2]"}, "result", [1, 2]),
        ({"result_json": '"text"'}, "result", "text"),
        ({"result_json": "0"}, "result", 0),
        ({"result": False}, "result", False),
        ({"tags": "a, b,, c "}, "tags", ["a", "b", "c"]),
        ({"tags": '["a, b", "c"]'}, "tags", ["a, b", "c"]),
        ({"tags": ["a", None, ""]}, "tags", ["a"]),
        ({"states": "DONE,failed"}, "states", ["done", "failed"]),
        ({"how": " p1 "}, "how", "P1"),
        ({"seconds": " 30 "}, "seconds", 30.0),
        ({"seconds": 2}, "seconds", 2.0),
        ({"seconds": "0.5"}, "seconds", 0.5),
    ],
)
def test_values_as_text_or_as_they_are(raw: dict[str, Any], name: str, value: Any) -> None:
    assert read(ARGUMENTS, {"name": "x", **raw}).value(name) == value


def test_a_number_where_text_is_wanted_is_its_digits() -> None:
    assert read(ARGUMENTS, {"name": 4711}).text("name") == "4711"


@pytest.mark.parametrize(
    ("raw", "field", "says"),
    [
        ({}, "name", "is missing"),
        ({"name": ""}, "name", "is missing"),
        ({"name": "x", "nmae": "y"}, "nmae", "it takes name, how, tags, states, seconds, payload_json, result_json"),
        ({"name": ["x"]}, "name", "must be text"),
        ({"name": True}, "name", "must be text"),
        ({"name": "x", "how": "P9"}, "how", "use one of: P0, P1"),
        ({"name": "x", "states": "done, lost"}, "states", "use one of: done, failed"),
        ({"name": "x", "tags": {"a": 1}}, "tags", "must be a list"),
        ({"name": "x", "seconds": "soon"}, "seconds", "is not a number"),
        ({"name": "x", "seconds": "1e400"}, "seconds", "is not a number"),
        ({"name": "x", "payload_json": "[1]"}, "payload_json", "must be a JSON object"),
        ({"name": "x", "payload_json": "{a: 1}"}, "payload_json", "is not valid JSON"),
        ({"name": "x", "payload_json": "{'a': 1}"}, "payload_json", "double quotes"),
        ({"name": "x", "payload_json": '{"a": NaN}'}, "payload_json", "NaN"),
        ({"name": "x", "payload_json": '{"a": "\\u0000"}'}, "payload_json", "NUL"),
    ],
)
def test_a_refusal_names_the_argument_and_says_what_to_send(raw: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(ApiError) as refused:
        read(ARGUMENTS, raw)
    assert refused.value.status_code == 422
    assert refused.value.details[0]["field"] == field
    assert field in refused.value.message
    assert says in refused.value.message


@pytest.mark.parametrize("raw", [[], "text", None, 1])
def test_arguments_are_an_object(raw: Any) -> None:
    with pytest.raises(ApiError, match="send a JSON object"):
        read(ARGUMENTS, raw)
