from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.dify.jsontext import clean, is_finite, leaves, loads, loads_object, one_line, without_nonfinite

ANY_TEXT = st.text(alphabet=st.characters())
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(ANY_JSON)
def test_what_was_read_can_be_stored_as_strict_json(value: object) -> None:
    """B095: both databases take it: valid UTF-8, no NUL, no NaN."""
    stored = without_nonfinite(loads(json.dumps(value)))
    text = json.dumps(stored, ensure_ascii=False, allow_nan=False)
    assert "\\u0000" not in text.replace("\\\\", "")
    assert json.loads(text.encode("utf-8")) == stored


def test_keys_are_cleaned_too() -> None:
    assert clean({"a\x00": ["\ud800"]}) == {"a\ufffd": ["\ufffd"]}


def test_long_integers_keep_every_digit_and_absurd_ones_are_no_number() -> None:
    assert loads('{"id": 653247040368672768}') == {"id": 653247040368672768}
    assert loads("9" * 5000) == math.inf


@pytest.mark.parametrize("text", ["", "{", "<html>", '{"a": 1} x', "[" * 100_000 + "]" * 100_000])
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        loads(text)
    assert loads_object(text) is None


def test_deep_nesting_never_breaks_out() -> None:
    for depth in (100, 300, 600, 900, 2000):
        try:
            value = loads('{"a":' * depth + "1" + "}" * depth)
        except ValueError as error:
            assert "deep" in str(error)  # noqa: PT017
        else:
            assert leaves(value) == [1]


def test_finite() -> None:
    assert is_finite({"a": [1.5, "NaN"]})
    assert not is_finite(loads('{"a": [NaN]}'))
    assert not is_finite(loads("-1e999"))
    assert without_nonfinite({"a": [math.nan, 1.0]}) == {"a": [None, 1.0]}


def test_one_line() -> None:
    assert one_line(" a\r\n\tb \x1b[31mc\x7f ") == "a b [31mc"
    assert one_line("a\x00b\ud800") == "a\ufffdb\ufffd"
    assert one_line("x" * 400) == "x" * 299 + "…"
