"""Names inside an archive: those that people gave, distinct, and such that every system can unpack them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

MAX_BYTES = 240  # of 255, which file systems take: room for a number
_NOT_IN_NAMES = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')  # what Windows refuses, and what would make folders
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # devices of Windows, with any ending


def distinct(given: Iterable[str]) -> list[str]:
    """One name for each, in order: safe, and no two equal on systems that do not tell case or composition apart."""
    taken: set[str] = set()
    names = []
    for name in map(_safe, given):
        stem, dot, ending = name.rpartition(".")
        stem, ending = (stem, dot + ending) if stem else (name, "")
        number, free = 1, name
        while _key(free) in taken:
            number += 1
            free = f"{stem} ({number}){ending}"
        taken.add(_key(free))
        names.append(free)
    return names


def _safe(name: str) -> str:
    safe = _NOT_IN_NAMES.sub("_", unicodedata.normalize("NFC", name)).strip().rstrip(". ")
    safe = safe.lstrip(".") or "file"
    if _RESERVED.fullmatch(safe):
        safe = f"_{safe}"
    stem, dot, ending = safe.rpartition(".")
    if len(safe.encode()) <= MAX_BYTES:
        return safe
    tail = (dot + ending) if stem and len(ending.encode()) <= 20 else ""
    room = MAX_BYTES - len(tail.encode())
    return (stem if tail else safe).encode()[:room].decode(errors="ignore").rstrip() + tail


def _key(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()
