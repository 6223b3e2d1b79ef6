"""Names of files as people gave them: kept for show and for download, never used as a path."""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath
from urllib.parse import quote

MAX_BYTES = 255  # what file systems take for one name, in UTF-8; who downloads it must be able to store it
_LONGEST_ENDING = 20  # bytes; what is longer is no ending but a sentence with a full stop in it
_NAMELESS = "file"


def shown_name(given: str | None) -> str:
    """The name to show: without folders and characters that nobody sees, at most MAX_BYTES, its ending kept."""
    text = unicodedata.normalize("NFC", given or "").replace("\\", "/").rsplit("/", 1)[-1]
    visible = "".join(it if _is_visible(it) else " " for it in text)
    name = " ".join(visible.split()).strip(". ") if set(visible) <= {".", " "} else " ".join(visible.split())
    stem, ending = split_ending(name)
    stem = stem or _NAMELESS
    room = MAX_BYTES - len(ending.encode())
    return _cut(stem, room) + ending


def split_ending(name: str) -> tuple[str, str]:
    """("photo", ".png"). A name that is only an ending has no stem: ("", ".png")."""
    if name.startswith(".") and name.count(".") == 1:
        return ("", name) if len(name.encode()) <= _LONGEST_ENDING else (name, "")
    ending = PurePosixPath(name).suffix
    if not ending or len(ending.encode()) > _LONGEST_ENDING:
        return name, ""
    return name[: -len(ending)], ending


def disposition(name: str, *, inline: bool = False) -> str:
    """The value of Content-Disposition: a plain name for old programs, the real one for all others (RFC 6266)."""
    plain = "".join(it if it.isascii() and it.isprintable() and it not in '"\\%' else "_" for it in name)
    kind = "inline" if inline else "attachment"
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def _cut(text: str, room: int) -> str:
    """At most `room` bytes of UTF-8, on the border of a character."""
    return text.encode()[:room].decode(errors="ignore")


def _is_visible(character: str) -> bool:
    """Not a control, format (zero width, direction), surrogate, private or unassigned character."""
    return not unicodedata.category(character).startswith("C")
