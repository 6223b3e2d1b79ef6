"""B055: a file's name is shown and downloaded as it was given, and never used as a path."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

import pytest

from board.files.names import MAX_BYTES, disposition, shown_name, split_ending

CASES = Path(__file__).parents[1] / "data/cases/web/file_names.json"
GIVEN = {
    "../../etc/cron.d/x.png": "x.png",
    "..\\..\\a.png": "a.png",
    "sub/dir/b.png": "b.png",
    ".png": "file.png",
    "CON.png": "CON.png",
    "a\0.png": "a .png",
    "报表（终稿）.png": "报表（终稿）.png",
    "<b>x</b>.png": "b>.png",
    'q"uote\r\nX-Evil: 1.png': 'q"uote X-Evil: 1.png',
    "": "file",
    "..": "file",
    "/": "file",
    "\u202egnp.exe": "gnp.exe",
    "README": "README",
    "archive.tar.gz": "archive.tar.gz",
    "a. A sentence that goes on after its stop": "a. A sentence that goes on after its stop",
    None: "file",
}


@pytest.mark.parametrize(("given", "shown"), GIVEN.items())
def test_what_is_shown(given: str | None, shown: str) -> None:
    assert shown_name(given) == shown


@pytest.mark.parametrize(
    "given", ["测" * 90 + ".png", "a" * 400 + ".jpeg", "测" * 400, "." + "x" * 300, "a.测" + "测" * 300]
)
def test_a_long_name_is_cut_on_the_border_of_a_character_and_keeps_its_ending(given: str) -> None:
    shown = shown_name(given)
    assert MAX_BYTES - 4 < len(shown.encode()) <= MAX_BYTES
    stem, ending = split_ending(shown)
    assert given.endswith(ending)
    assert given.startswith(stem)


@pytest.mark.parametrize("name", [*GIVEN.values(), "100%.png", "a;b=c.png"])
def test_a_download_header_carries_the_name_and_nothing_else(name: str) -> None:
    header = disposition(name)
    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') == 2
    assert unquote(header.rpartition("UTF-8''")[2]) == name


def test_the_names_from_the_field() -> None:
    for case in json.loads(CASES.read_text(encoding="utf-8")):
        shown = shown_name(case["name"])
        assert shown.endswith(".png"), case["why"]
        assert not set(shown) & set("/\\\0\r\n"), case["why"]
        assert len(shown.encode()) <= MAX_BYTES, case["why"]
