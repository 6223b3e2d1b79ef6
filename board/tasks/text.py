"""JSON at the door: what both databases, every browser and every later reader can take, and nothing else."""

from __future__ import annotations

import json
import math
import re
from typing import Any

# Deeper than any honest payload, and far below Python's recursion limit.
MAX_DEPTH = 64
# Python turns no longer text into a number, and no honest number is as long.
MAX_DIGITS = 4300
_BAD = re.compile("[\x00\ud800-\udfff]")


class BadJson(ValueError):
    """path: where in the body, such as `payload.items[2].name`; the text is fit for a person."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class NotJson(ValueError):
    """The text is not JSON at all."""


class _NoNumber:
    """Stands where NaN, Infinity or an endless integer stood, until its place is known."""

    def __init__(self, problem: str) -> None:
        self.problem = problem


def parse(raw: bytes) -> Any:
    """A JSON body. Raises NotJson, or BadJson for NaN, Infinity, NUL, half surrogate pairs and too deep nesting."""
    value = load(raw)
    check(value)
    return value


def load(raw: bytes) -> Any:
    """A JSON body whose parts are still to be checked, one by one. Of a key that stands twice the last value counts."""
    if not raw.strip():
        raise NotJson("The body is empty; send JSON.")
    try:
        return json.loads(raw.decode("utf-8-sig"), parse_constant=_no_constant, parse_int=_integer)
    except UnicodeDecodeError as error:
        raise NotJson("The body is not UTF-8.") from error
    except RecursionError as error:
        raise BadJson("body", f"is nested deeper than {MAX_DEPTH} levels") from error
    except json.JSONDecodeError as error:
        raise NotJson(
            f"The body is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from error


def _no_constant(text: str) -> _NoNumber:
    return _NoNumber(f"{text} is not a number that JSON knows; send null or leave it out")


def _integer(text: str) -> int | _NoNumber:
    if len(text.lstrip("-")) > MAX_DIGITS:
        return _NoNumber(f"the number has more than {MAX_DIGITS} digits; send it as text")
    return int(text)


def check(value: Any, path: str = "", depth: int = 0) -> None:
    """Raise BadJson for the first thing in a value that cannot be kept."""
    if depth > MAX_DEPTH:
        raise BadJson(path[:200], f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        for key, item in value.items():
            inner = f"{path}.{key}" if path else key
            check_text(key, path or "body", "a key with ")
            check(item, inner, depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            check(item, f"{path}[{index}]", depth + 1)
    elif isinstance(value, str):
        check_text(value, path or "body")
    elif isinstance(value, _NoNumber):
        raise BadJson(path or "body", value.problem)
    elif isinstance(value, float) and not math.isfinite(value):
        raise BadJson(path or "body", "the number is too large; send it as text")


def check_text(text: str, path: str, what: str = "") -> None:
    found = _BAD.search(text)
    if found is None:
        return
    name = "U+0000 (NUL)" if found[0] == "\0" else f"U+{ord(found[0]):04X} (half of a surrogate pair)"
    raise BadJson(_BAD.sub("?", path), f"contains {what}{name}, which cannot be stored; remove it")


def clean(value: Any) -> Any:
    """The same value with what cannot be stored replaced by U+FFFD: for output of models and files, never refused.

    Where nothing is to be replaced, the very object that was given.
    """
    if isinstance(value, str):
        return value if value.isascii() and "\0" not in value else _BAD.sub("�", value)
    if isinstance(value, dict):
        if all(clean(key) is key and clean(item) is item for key, item in value.items()):
            return value
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return value if all(clean(item) is item for item in value) else [clean(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
