"""What a file is called where it is put: a path below the connection's address, and never one that leads out of it."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

# Not on every file system, or not as they are meant: separators, drives, wild cards, and what cannot be seen.
_BAD = re.compile(r'[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff:*?"<>|\\]')
MAX_PART = 200  # bytes in UTF-8: file systems take 255, and some servers add something of their own
MAX_PATH = 900  # bytes in UTF-8: S3 takes 1,024, with the folder of the connection


class BadName(ValueError):
    """The name cannot be used. Its text says why."""


def safe_part(name: str) -> str:
    """One part of a path. What cannot stand in it becomes "_"; what is too long is cut before its ending."""
    text = _BAD.sub("_", unicodedata.normalize("NFC", name).replace("/", "_")).strip().lstrip(".").rstrip(". ")
    stem, dot, ending = text.rpartition(".")
    if not dot or len(ending) > 10:
        stem, dot, ending = text, "", ""
    return _cut(stem, MAX_PART - len((dot + ending).encode())) + dot + ending


def safe_path(text: str) -> str:
    """A path of several parts, such as `2026/reports/a.pdf`. Raises BadName where nothing is left of it."""
    parts = [part for part in map(safe_part, text.replace("\\", "/").split("/")) if part]
    if not parts:
        raise BadName(f"“{text[:60]}” cannot be the name of a file. Give one with letters or digits.")
    path = "/".join(parts)
    if len(path.encode()) > MAX_PATH:
        raise BadName(f"The name of the file has more than {MAX_PATH} bytes. Give a shorter one.")
    return path


def quoted(path: str) -> str:
    """The path as it stands in an address."""
    return quote(path, safe="/")


def _cut(text: str, size: int) -> str:
    return text.encode()[: max(1, size)].decode(errors="ignore")
