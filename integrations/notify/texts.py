"""Fitting texts into what a chat takes: by characters, by bytes, and without markup of their own."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

CUT = "…"
# Where a chat knows no escape for its markup, the signs that begin any are shown as their full-width likenesses.
_LIKE = str.maketrans(dict(zip("[]<>*`#|", "［］＜＞＊｀＃｜", strict=True)))


def in_bytes(text: str) -> int:
    """The length in UTF-8: a Chinese character has three bytes."""
    return len(text.encode())


def in_utf16(text: str) -> int:
    """The length in UTF-16 units: an emoji has two."""
    return len(text.encode("utf-16-le")) // 2


def cut(text: str, most: int, length: Callable[[str], int] = len) -> str:
    """The text, or as much of its beginning as has at most `most` units with the sign that it was cut."""
    if length(text) <= most:
        return text
    low, high = 0, len(text)
    while low < high:  # the longest beginning that fits
        middle = (low + high + 1) // 2
        low, high = (middle, high) if length(text[:middle] + CUT) <= most else (low, middle - 1)
    return text[:low].rstrip() + CUT


def without_markup(text: str) -> str:
    return text.translate(_LIKE)


def line(text: str) -> str:
    return " ".join(text.split())


def is_public(url: str) -> bool:
    """Whether the host of a link looks like one that others can reach."""
    host = urlsplit(url).hostname or ""
    return "." in host and not host.replace(".", "").isdigit() and not host.endswith((".local", ".localhost"))
