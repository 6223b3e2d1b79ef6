from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.dify.answers import BadSchema, find_in_outputs, find_json, is_empty, shape, without_reasoning
from tests.integrations.dify import cases

fits = shape(cases.SCHEMA)
GOOD = {"decision": "approve", "score": 0.82, "reason": "size ok"}
OTHER = {"decision": "reject", "score": 0.1, "reason": "blurred"}
G, O = json.dumps(GOOD), json.dumps(OTHER)  # noqa: E741


@pytest.mark.parametrize("name", cases.AI)
def test_case_answers(name: str) -> None:
    """B019: the only right value, or none."""
    expected = cases.AI[name]
    assert find_json(cases.ai(name), fits) == ([expected["is"]] if "is" in expected else [])


@pytest.mark.parametrize(
    "text",
    [
        f"<think>Perhaps {O}</think>{G}",
        f"Perhaps {O}\n</think>\n{G}",
        f"<THINK lang='en'>a</THINK>b</think>{G}",
        f"<thinking>{O}</thinking> {G} [1]",
        f"{G}\n<think>or {O}",
        f"{G} And once more: ```\n{G}\n```",
        f"~~~json\n{G}\n~~~",
        f"\ufeff{G}\u200b",
        f"Use {{curly}} [see {{x}}]: {G}",
        f"答案：{G}。参考[2]",
        f'{G} {{"note": "no answer"}} [] [1, 2]',
        f'He wrote "hm" and {G}',
    ],
)
def test_the_one_answer_is_found(text: str) -> None:
    assert find_json(text, fits) == [GOOD]


@pytest.mark.parametrize(
    "text",
    [
        G[:-1],
        G[:-10],
        G.replace('"', "'"),
        G.replace("0.82", "NaN"),
        G.replace("0.82", "1e999"),
        G.replace("0.82", "true"),
        G.replace("0.82", "9" * 5000),
        G.replace('"score"', '"decision": "reject", "score"'),
        f"<think>{G}",
        f"<think>{G}</think>",
        f'{{"draft": {G}, "final": {{"decision": "rej',
        f'{{"draft": {G}, "note": "he said "no"", "x": 1}}',
        f'[{G}, {{"decision": "reject", ',
        f'{{"example": {G}}}',
        json.dumps(G),
        "[" * 200_000,
        '{"a":' * 100_000,
        '{"' * 100_000,
        "<think>" * 50_000,
        '{"a": "' * 30_000,
        '{"' * 400_000 + G,
        G + " " * 1_000_000,
    ],
    ids=lambda text: text[:30],
)
def test_no_answer_is_taken_from_what_is_cut_broken_or_only_thought(text: str) -> None:
    assert find_json(text, fits) == []


def test_two_different_answers_are_both_told_so_that_none_is_taken() -> None:
    assert find_json(f"{G} or rather {O}", fits) == [GOOD, OTHER]
    assert find_in_outputs({"text": f"{G} or rather {O}"}, fits) is None


def test_outputs_give_an_answer_only_where_exactly_one_text_holds_one() -> None:
    text = f"Here: {G}"
    assert find_in_outputs({"text": text, "n": 3, "more": ["x", None]}, fits) == (GOOD, text)
    assert find_in_outputs({"deep": {"er": [text]}}, fits) == (GOOD, text)
    assert find_in_outputs({"a": G, "b": O}, fits) is None
    assert find_in_outputs({"a": G, "b": G}, fits) is None
    assert find_in_outputs({"a": G, "b": f"{O} {G}"}, fits) is None
    assert find_in_outputs({}, fits) is None


def test_surrogates_and_nul_in_an_answer_are_replaced() -> None:
    text = '{"decision": "approve", "score": 1, "reason": "a\\u0000b\\ud800c\\ud83d\\ude00"}'
    assert find_json(text, fits) == [{"decision": "approve", "score": 1, "reason": "a\ufffdb\ufffdc😀"}]


@given(
    before=st.text(alphabet="ab {}[]\"':,1\n你", max_size=40), after=st.text(alphabet="ab {}[]\"':,1\n你", max_size=40)
)
def test_text_around_never_gives_another_answer(before: str, after: str) -> None:
    assert find_json(before + G + after, fits) in ([GOOD], [])


@given(st.text(alphabet='{}[]",:truefalsn0.1e-\\ \n<>/think', max_size=200))
def test_no_text_breaks_the_search(text: str) -> None:
    assert isinstance(find_json(text, shape({})), list)
    assert isinstance(without_reasoning(text), str)


@pytest.mark.parametrize(
    "value",
    [
        {},
        None,
        "",
        [],
        {"text": ""},
        {"text": " \n\t\u3000\u200b"},
        {"a": None, "b": [{"c": ""}]},
        {"text": "<think>hm</think> "},
    ],
)
def test_empty(value: Any) -> None:
    assert is_empty(value)


@pytest.mark.parametrize(
    "value", [0, False, {"n": 0}, {"text": "", "ok": False}, "x", {"text": "<think>a</think>b"}, ["", "0"]]
)
def test_not_empty(value: Any) -> None:
    assert not is_empty(value)


def test_a_schema_that_is_none_or_points_outside_is_told_and_nothing_is_fetched() -> None:
    with pytest.raises(BadSchema):
        shape({"type": "no such type"})
    with pytest.raises(BadSchema, match=r"http://127\.0\.0\.1:9/x"):
        shape({"$ref": "http://127.0.0.1:9/x"})({})
    assert shape({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}})({})


def test_nonfinite_numbers_never_fit() -> None:
    assert not shape({})({"deep": [math.nan]})
    assert not shape({})({"deep": [-math.inf]})
    assert shape({})({"deep": [1e308]})
