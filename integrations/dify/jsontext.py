"""JSON and text from outside, made fit to be stored: nothing that an AI writes may make a database refuse a row."""

from __future__ import annotations

import json
import math
import re

from board.ports import Json

# PostgreSQL takes neither NUL nor half a surrogate pair in text and jsonb; SQLite takes NUL but cuts at it.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SPACES = re.compile(r"[\s\x00-\x1f\x7f]+")

# Characters of a model's text that are kept. Dify variables hold at most 200 KB; more than this nobody would read.
MAX_RAW_TEXT = 400_000

# Python refuses to read integers of more than 4300 digits. No program means such a number: it counts as not finite.
_MAX_DIGITS = 1000


def clean_text(text: str) -> str:
    """The text with NUL and lone surrogates replaced by U+FFFD."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def clean(value: Json) -> Json:
    """The same JSON value with every text in it, keys too, made storable."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item) for item in value]
    return value


def loads(text: str) -> Json:
    """Read JSON that came from outside, cleaned.

    NaN and Infinity are let through (Dify writes them where a model made them): ask `is_finite`. Raises ValueError
    for text that is no JSON or nested too deeply.
    """
    try:
        return clean(json.loads(text, parse_int=read_integer))
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def loads_object(text: str) -> dict[str, Json] | None:
    """Read JSON from outside that must be an object; None when it is anything else."""
    try:
        value = loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def read_integer(digits: str) -> int | float:
    """The `parse_int` of everything that is read here: an absurdly long integer becomes infinite, not an error."""
    return int(digits) if len(digits) <= _MAX_DIGITS else math.inf


def is_finite(value: Json) -> bool:
    """False when a NaN or an infinity stands anywhere in the value: it is then no valid JSON."""
    return all(math.isfinite(leaf) for leaf in leaves(value) if isinstance(leaf, float))


def without_nonfinite(value: Json) -> Json:
    """The value with null in the place of every NaN and infinity, so that it can be shown and stored."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: without_nonfinite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nonfinite(item) for item in value]
    return value


def leaves(value: Json) -> list[Json]:
    """Every text, number, boolean and null in the value, at any depth, in order."""
    found: list[Json] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(reversed(item.values()))
        elif isinstance(item, list):
            stack.extend(reversed(item))
        else:
            found.append(item)
    return found


def one_line(text: str, limit: int = 300) -> str:
    """The text on one line, storable, at most `limit` characters."""
    line = _SPACES.sub(" ", clean_text(text[: limit * 4])).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"
