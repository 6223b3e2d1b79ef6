"""JSON at the door: what both databases, every browser and every later reader can take, and nothing else."""

from __future__ import annotations

import json
import math
import re
from typing import Any

# Deeper than any honest payload, and far below Python's recursion limit.
MAX_DEPTH = 64
_BAD = re.compile("[\x00\ud800-\udfff]")


class BadJson(ValueError):
    """path: where in the body, such as `payload.items[2].name`; the text is fit for a person."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class NotJson(ValueError):
    """The text is not JSON at all."""


class _NoNumber:
    """Stands where NaN or Infinity stood, until its place is known."""

    def __init__(self, text: str) -> None:
        self.text = text


def parse(raw: bytes) -> Any:
    """A JSON body. Raises NotJson, or BadJson for NaN, Infinity, NUL, half surrogate pairs and too deep nesting."""
    try:
        value = json.loads(raw.decode("utf-8-sig"), parse_constant=_NoNumber)
    except UnicodeDecodeError as error:
        raise NotJson("The body is not UTF-8.") from error
    except RecursionError as error:
        raise BadJson("body", f"is nested deeper than {MAX_DEPTH} levels") from error
    except json.JSONDecodeError as error:
        raise NotJson(
            f"The body is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from error
    except ValueError as error:  # an integer of more than 4,300 digits
        raise BadJson("body", "holds a number that is too long") from error
    check(value)
    return value


def check(value: Any, path: str = "", depth: int = 0) -> None:
    """Raise BadJson for the first thing in a value that cannot be kept."""
    if depth > MAX_DEPTH:
        raise BadJson(path, f"is nested deeper than {MAX_DEPTH} levels")
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
        raise BadJson(path or "body", f"{value.text} is not a number that JSON knows; send null or leave it out")
    elif isinstance(value, float) and not math.isfinite(value):
        raise BadJson(path or "body", "the number is too large")


def check_text(text: str, path: str, what: str = "") -> None:
    found = _BAD.search(text)
    if found is None:
        return
    name = "U+0000 (NUL)" if found[0] == "\0" else f"U+{ord(found[0]):04X} (half of a surrogate pair)"
    raise BadJson(_BAD.sub("?", path), f"contains {what}{name}, which cannot be stored; remove it")


def clean(value: Any) -> Any:
    """The same value with what cannot be stored replaced by U+FFFD: for output of models and files, never refused."""
    if isinstance(value, str):
        return _BAD.sub("�", value)
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
