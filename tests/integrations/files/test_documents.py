"""Documents: text and pictures of good ones, plain words about the others (B049, B051, B053)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from integrations.files.bad_file import BadFile
from integrations.files.documents import make as work
from integrations.files.documents import pdf as opening
from integrations.files.documents.make import MAKERS
from integrations.files.documents.options import OPTIONS
from integrations.files.options import values
from tests.integrations.files.pdfs import pdf

CASES = Path(__file__).parents[2] / "data/cases"
LIMIT = 100_000_000


def make(name: str, source: Path, folder: Path, limit: int = LIMIT, **options: Any) -> Any:
    return MAKERS[name](str(source), str(folder), limit, values(OPTIONS[name], options))


def text_of(source: Path, folder: Path, **options: Any) -> dict[str, Any]:
    made = make("document.text", source, folder, **options)
    assert Path(made["path"]).read_text(encoding="utf-8")[: work.TEXT_SHOWN] == made["text"]
    return dict(made)


# -- text ---------------------------------------------------------------------------------------------------------


def test_the_text_of_a_document(tmp_path: Path) -> None:
    made = text_of(CASES / "docs/d_ok.pdf", tmp_path)
    assert made["text"].strip() == "control page D"
    assert (made["pages"], made["ending"], made["notes"]) == (1, ".txt", [])


def test_pages_stay_apart_and_in_their_order(tmp_path: Path) -> None:
    made = text_of(pdf(tmp_path / "a.pdf", ["first", "second", "third"]), tmp_path)
    assert [it.strip() for it in made["text"].split("\f")] == ["first", "second", "third"]
    assert made["pages"] == 3


def test_a_scan_without_text_is_named_so(tmp_path: Path) -> None:
    made = text_of(pdf(tmp_path / "scan.pdf", ["", ""]), tmp_path)
    assert made["text"].strip() == ""
    assert "its pages are pictures" in made["notes"][0]


def test_a_long_text_is_short_in_the_result_and_whole_in_the_file(tmp_path: Path) -> None:
    source = tmp_path / "long.txt"
    source.write_text("字" * (work.TEXT_SHOWN + 5), encoding="utf-8")
    made = text_of(source, tmp_path)
    assert len(made["text"]) == work.TEXT_SHOWN
    assert Path(made["path"]).read_text(encoding="utf-8") == source.read_text(encoding="utf-8")
    assert made["notes"] == ["text has the first 20000 of 20005 characters; the file has all of them"]


def test_the_text_of_a_document_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MAX_TEXT", 8)
    made = text_of(pdf(tmp_path / "a.pdf", ["first", "second", "third"]), tmp_path)
    assert [it.strip() for it in made["text"].split("\f")] == ["first", "sec"]
    assert made["notes"] == ["the text was cut on page 2, after 8 characters"]


@pytest.mark.parametrize(
    ("data", "encoding", "found"),
    [
        ("退款 𠮷".encode("gb18030"), None, "gb18030"),
        ("退款 𠮷".encode("utf-8-sig"), None, "utf-8-sig"),
        ("退款 𠮷".encode("utf-16"), None, "utf-16"),
        ("退款 𠮷".encode(), None, "utf-8"),
        ("café".encode("windows-1252"), "windows-1252", "windows-1252"),
    ],
)
def test_a_plain_text_in_any_encoding(data: bytes, encoding: str | None, found: str, tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_bytes(data)
    options = {"encoding": encoding} if encoding else {}
    made = text_of(tmp_path / "plain.txt", tmp_path, **options)
    assert made["text"] in ("退款 𠮷", "café")
    assert made["encoding"] == found


def test_what_a_database_refuses_is_not_in_the_text(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_bytes(b"a\x0b\x1bb\r\nc\x07\ttab\rd")
    assert text_of(tmp_path / "plain.txt", tmp_path)["text"] == "ab\nc\ttab\nd"


# -- pictures of pages --------------------------------------------------------------------------------------------


def test_the_first_page_as_a_picture(tmp_path: Path) -> None:
    [made] = make("document.preview", pdf(tmp_path / "a.pdf", ["", "second"]), tmp_path, size=400)
    image = Image.open(made["path"])
    assert (image.format, image.size) == ("JPEG", (400, 200))
    assert (made["page"], made["pages"], made["suffix"]) == (1, 2, "-1")
    dark, light = image.convert("L").getpixel((60, 150)), image.convert("L").getpixel((300, 50))
    assert isinstance(dark, int)
    assert isinstance(light, int)
    assert (dark < 20, light > 235) == (True, True)  # the square is where it was drawn


def test_as_many_pages_as_were_asked_for_and_no_more_than_there_are(tmp_path: Path) -> None:
    source = pdf(tmp_path / "a.pdf", ["one", "two", "three"])
    for asked, given in ((2, 2), (9, 3)):
        made = make("document.preview", source, tmp_path, pages=asked, size=64, format="png")
        assert [it["page"] for it in made] == list(range(1, given + 1))
        assert len({Path(it["path"]).read_bytes() for it in made}) == given


@pytest.mark.parametrize("size", [(20_000, 1), (1, 20_000), (14_400, 14_400)])
def test_a_page_of_any_measure_gives_a_small_picture(size: tuple[float, float], tmp_path: Path) -> None:
    [made] = make("document.preview", pdf(tmp_path / "a.pdf", [""], size), tmp_path, size=256)
    assert max(made["width"], made["height"]) == 256
    assert min(made["width"], made["height"]) >= 1


def test_more_pixels_than_are_allowed_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="BOARD_MAX_PIXELS"):
        make("document.preview", CASES / "docs/d_ok.pdf", tmp_path, limit=10_000, size=101)


# -- bad ones -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_a_document_with_a_password_says_so(name: str, tmp_path: Path) -> None:
    """B049."""
    with pytest.raises(BadFile, match="needs a password"):
        make(name, CASES / "docs/d_password.pdf", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", MAKERS)
def test_damaged_and_empty_ones_say_so(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty.pdf").write_bytes(b"")
    (tmp_path / "cut.pdf").write_bytes((CASES / "docs/d_ok.pdf").read_bytes()[:60])
    pdf(tmp_path / "none.pdf", [])
    for file, word in (("empty.pdf", "empty"), ("cut.pdf", "damaged"), ("none.pdf", "damaged|empty")):
        with pytest.raises(BadFile, match=word):
            make(name, tmp_path / file, tmp_path)


@pytest.mark.parametrize("name", MAKERS)
def test_too_many_pages_are_refused_before_they_are_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "MAX_PAGES", 2)
    with pytest.raises(BadFile, match="3 pages; at most 2"):
        make(name, pdf(tmp_path / "a.pdf", ["1", "2", "3"]), tmp_path)


def test_what_is_no_document_says_so(tmp_path: Path) -> None:
    """B053."""
    with pytest.raises(BadFile, match="no PDF"):
        make("document.preview", CASES / "images/d_rgba.png", tmp_path)
    with pytest.raises(BadFile, match="neither a PDF document nor a plain text"):
        make("document.text", CASES / "images/d_rgba.png", tmp_path)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 d\xe9j\xe0 vu \xff")
    with pytest.raises(BadFile, match="option encoding"):
        make("document.text", tmp_path / "latin.txt", tmp_path)
