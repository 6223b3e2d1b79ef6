"""The rule of IDs (docs/task-ids.md): one stored form, no character that gets lost on the way."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from board.tasks.ids import MAX_LENGTH, BadTaskId, canonical, id_safe


@pytest.mark.parametrize(
    ("given_", "stored"),
    [
        ("INV-7", "INV-7"),
        ("  INV-7\r\n", "INV-7"),
        ("order\t \n12", "order 12"),
        ("a\u00a0\u2003\u3000b", "a b"),
        ("a\u0085b\u2028c", "a b c"),
        ("e\u0301", "é"),
        ("\u212b", "Å"),
        ("Ａ", "Ａ"),  # width counts
        ("a", "a"),
        ("A", "A"),
        ("0012", "0012"),
        ("线索 1", "线索 1"),
        ("😀", "😀"),
        ("...", "..."),
        ("x" * MAX_LENGTH, "x" * MAX_LENGTH),
        ("  " + "x" * MAX_LENGTH + "  ", "x" * MAX_LENGTH),
        ("e\u0301" * MAX_LENGTH, "é" * MAX_LENGTH),
        ("\ue000", "\ue000"),  # for private use: somebody's own signs
    ],
)
def test_the_stored_form(given_: str, stored: str) -> None:
    assert canonical(given_) == stored


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "empty"),
        (" \t\r\n\u3000", "empty"),
        ("x" * 201, "201 characters; at most 200"),
        (".", "“.”"),
        ("..", "“..”"),
        (" .. ", "“..”"),
        ("a/b", "“/”"),
        ("a?b", "“?”"),
        ("a#b", "“#”"),
        ("50%", "“%”"),
        ("a\\b", "“\\”"),
        ("a\x07b", "U+0007"),
        ("a\x00b", "U+0000"),
        ("a\x1cb", "U+001C"),
        ("a\x1fb", "U+001F"),
        ("a\x7fb", "U+007F"),
        ("a\u0080b", "U+0080"),
        ("a\u200bb", "U+200B ZERO WIDTH SPACE"),
        ("a\u200db", "U+200D ZERO WIDTH JOINER"),
        ("\ufeffa", "U+FEFF ZERO WIDTH NO-BREAK SPACE"),
        ("\u202ea", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("a\u00adb", "U+00AD SOFT HYPHEN"),
        ("a\u180eb", "U+180E"),
        ("a\ud800b", "U+D800"),
        ("a\uffffb", "U+FFFF"),
        ("a\u0378b", "U+0378"),
        ("a\U000e0041b", "U+E0041"),
    ],
)
def test_what_is_refused_is_named(text: str, named: str) -> None:
    with pytest.raises(BadTaskId) as refused:
        canonical(text)
    assert named in str(refused.value)
    str(refused.value).encode()  # can be written to any log


@given(text=st.text(max_size=250))
def test_the_stored_form_is_its_own_stored_form(text: str) -> None:
    try:
        stored = canonical(text)
    except BadTaskId:
        return
    assert canonical(stored) == stored == canonical(f"\n {stored}\t")
    assert unicodedata.is_normalized("NFC", stored)
    assert 1 <= len(stored) <= MAX_LENGTH
    assert not {unicodedata.category(character) for character in stored} & {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}


@given(text=st.text(max_size=300))
def test_id_safe_makes_any_text_usable(text: str) -> None:
    safe = id_safe(text)
    assert canonical(safe) == safe
    assert id_safe(safe) == safe


@given(one=st.text(max_size=20), two=st.text(max_size=20))
def test_id_safe_keeps_different_texts_apart(one: str, two: str) -> None:
    assert (id_safe(one) == id_safe(two)) == (one == two)


def test_id_safe_keeps_what_is_good() -> None:
    assert id_safe("INV 7") == "INV 7"
    assert id_safe("a/b").startswith("a_b-")
    assert id_safe("x" * 300).startswith("x" * 100 + "-")
