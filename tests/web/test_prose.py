"""What an AI wrote is readable and can do nothing."""

import json
from pathlib import Path

import pytest

from board.web import hidden
from board.web.prose import render
from board.web.tree import MOST_CHARACTERS, MOST_VALUES, tree

MARKUP = Path(__file__).parent.parent / "data" / "cases" / "web" / "ai_outputs_markup.json"
TEXTS: list[str] = json.loads(MARKUP.read_text(encoding="utf-8"))


@pytest.mark.parametrize("text", TEXTS)
def test_markup_is_text(text: str) -> None:
    html = str(render(text))
    assert "<script" not in html
    assert "<img" not in html
    assert "<svg" not in html
    assert 'href="javascript' not in html


def test_plain_markdown_is_rendered() -> None:
    html = str(render("**bold** and `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n- two"))
    for part in ("<strong>bold</strong>", "<code>code</code>", "<td>1</td>", "<li>one</li>"):
        assert part in html


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[Bank](https://bank.example/login?x=1)", "</a> (bank.example)"),
        ("[paypal.com](https://раура1.example/)", "xn--"),
        ("[mail](mailto:a@example.org)", 'href="mailto:a@example.org"'),
    ],
)
def test_a_link_says_where_it_leads(text: str, expected: str) -> None:
    html = str(render(text))
    assert expected in html
    assert 'rel="noopener noreferrer nofollow"' in html
    assert 'target="_blank"' in html


@pytest.mark.parametrize(
    "url", ["http://a.example/", "/logout", "ftp://a.example", "//a.example/x", "https:evil", "#x"]
)
def test_other_addresses_are_no_links(url: str) -> None:
    html = str(render(f"[click]({url})"))
    assert "<a" not in html or url == "https:evil"
    assert url in html


def test_a_remote_picture_is_not_loaded() -> None:
    html = str(render("![pixel](https://tracker.example/p.png)"))
    assert "<img" not in html
    assert "tracker.example" in html


def test_hidden_characters_are_taken_out_and_counted() -> None:
    found = hidden.Found()
    text = "pay\u202e\u2066 1\u200b0\ufeff0 now" + "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    assert hidden.strip(text, found) == "pay 100 now"
    assert sum(found.values()) == 8
    assert ("U+202E", "RIGHT-TO-LEFT OVERRIDE", 1) in hidden.named(found)
    value = hidden.strip_all({"k\u200b": ["a\u200b", {"b": 1}], "n": None}, found)
    assert value == {"k": ["a", {"b": 1}], "n": None}


@pytest.mark.parametrize("text", ["👩‍👩‍👧 and ❤️", "🏳️‍🌈", "你好，世界\n第二行\tTab", "naïve – “quoted”"])
def test_what_people_write_stays(text: str) -> None:
    found = hidden.Found()
    assert hidden.strip(text, found) == text
    assert not found


def test_long_numbers_keep_every_digit() -> None:
    node = tree({"id": 2**70, "price": 19.99, "ok": True, "none": None})
    assert [child.text for child in node.children] == [str(2**70), "19.99", "true", "null"]


def test_a_huge_value_is_cut_and_says_so() -> None:
    node = tree({"rows": [[n, n] for n in range(MOST_VALUES)]})
    assert not node.whole()
    rows = node.children[0]
    assert sum(len(row.children) + 1 for row in rows.children) + 1 <= MOST_VALUES
    assert rows.left_out + len(rows.children) == MOST_VALUES
    assert tree({"rows": [[1], [2]]}).whole()


def test_very_long_texts_are_shown_plain_and_cut() -> None:
    node = tree(["**a**" * 10_000, "**b**" * 20_000, "c" * MOST_CHARACTERS, "d"], markdown=True)
    kinds = [(child.kind, child.html is not None, child.left_out) for child in node.children]
    assert kinds == [("prose", True, 0), ("long", False, 0), ("long", False, 150_000), ("long", False, 1)]
    assert sum(len(child.text) for child in node.children) == MOST_CHARACTERS


def test_keys_that_only_look_alike_do_not_hide_each_other() -> None:
    value = {"amount": 1, "am\u200bount": 2, "amount\u2060": 3}
    assert list(hidden.strip_all(value, hidden.Found()).values()) == [1, 2, 3]
