"""Encodings: found where that is safe, asked for where it is not (B059)."""

from __future__ import annotations

import pytest

from board.sheets.decode import ENCODINGS, BadText, decode

CHINESE = "客户反馈：退款审核，图片压缩；長編號 𠮷野家 ✅ €\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_found_and_told(encoding: str) -> None:
    assert decode(CHINESE.encode(encoding)) == (CHINESE, encoding)


def test_big_endian_by_its_mark() -> None:
    assert decode(b"\xfe\xff" + CHINESE.encode("utf-16-be")) == (CHINESE, "utf-16")


@pytest.mark.parametrize("text", ["café|1", "Müller, Jürgen", "señor año", "déjà vu à Orléans", "naïve"])
def test_western_text_is_never_taken_for_chinese(text: str) -> None:
    data = text.encode("windows-1252")
    with pytest.raises(BadText, match="option encoding"):
        decode(data)
    assert decode(data, "windows-1252") == (text, "windows-1252")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_that_may_be_asked_for_is_one(encoding: str) -> None:
    assert decode("a,b".encode(encoding), encoding)[0] == "a,b"


def test_a_mark_is_no_character_whatever_is_asked_for() -> None:
    assert decode(CHINESE.encode("utf-8-sig"), "utf-8") == (CHINESE, "utf-8-sig")


def test_what_does_not_fit_is_told_with_its_place() -> None:
    with pytest.raises(BadText, match="byte 2 "):
        decode(b"a\xff", "utf-8")


@pytest.mark.parametrize("data", [b"\x89PNG\0\0", b"\xef\xbb\xbfa\xff"])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(BadText):
        decode(data)


def test_nothing_is_an_empty_text() -> None:
    assert decode(b"") == ("", "utf-8")
