"""Where a payload names files: every `{"file": "file_…"}` in it, however deep."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from typing import Any

PREFIX = "file_"
_NESTED = (dict, list)  # looked at for every value of every payload, so no union is made anew each time
_ID = re.compile(r"file_[0-9a-f]{32}")


def new_file_id() -> str:
    """Random, 128 bits: to know one is to have been given it."""
    return PREFIX + secrets.token_hex(16)


def is_file_id(text: Any) -> bool:
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def references(value: Any, path: str = "payload") -> Iterator[tuple[str, str]]:
    """(path, file id) of every reference, in the order of the payload. Another text under `file` is none."""
    waiting = [(path, value)]
    while waiting:
        place, it = waiting.pop(0)
        if isinstance(it, dict):
            if is_file_id(it.get("file")):
                yield f"{place}.file", it["file"]
            waiting += [(f"{place}.{name}", inner) for name, inner in it.items() if isinstance(inner, _NESTED)]
        elif isinstance(it, list):
            waiting += [(f"{place}[{n}]", inner) for n, inner in enumerate(it) if isinstance(inner, _NESTED)]
