"""A JSON object as a form with a field for each of its values, and back again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from board.tasks import text
from board.web.forms import Form

PREFIX = "value:"  # before the name of each value's field
_LONG = 60  # characters from which a text gets several lines
_MOST_FIELDS = 60  # more are quicker to change as JSON


@dataclass(frozen=True, slots=True)
class Field:
    """kind: text, long, choice, truth, number, json. shown: what stands in the field. absent: the object lacks it."""

    name: str
    kind: str
    shown: str
    options: Sequence[str] = ()
    required: bool = False
    absent: bool = False
    note: str | None = None
    problem: str | None = None


def fields(value: Mapping[str, Any], schema: Mapping[str, Any] | None) -> list[Field] | None:
    """The fields of an object, those that its schema names first; None where there are too many for a form."""
    known = (schema or {}).get("properties") or {}
    names = [*known, *(name for name in value if name not in known)]
    if len(names) > _MOST_FIELDS:
        return None
    required = (schema or {}).get("required") or ()
    return [_field(name, value, known.get(name), name in required) for name in names]


def _field(name: str, value: Mapping[str, Any], rule: Any, required: bool) -> Field:
    rule = rule if isinstance(rule, Mapping) else {}
    now, absent = value.get(name), name not in value
    note = rule.get("description") or rule.get("title")
    options = [it for it in rule.get("enum") or () if isinstance(it, str)]
    kind = _kind(now, absent, rule, bool(options))
    note = note if isinstance(note, str) else None
    return Field(name, kind, "" if absent else _shown(kind, now), options, required, absent, note)


def _kind(now: Any, absent: bool, rule: Mapping[str, Any], choice: bool) -> str:
    if choice and (absent or isinstance(now, str)):
        return "choice"
    if isinstance(now, bool) or (absent and rule.get("type") == "boolean"):
        return "truth"
    if isinstance(now, int | float) or (absent and rule.get("type") in ("integer", "number")):
        return "number"
    if isinstance(now, str):
        return "long" if "\n" in now or len(now) > _LONG else "text"
    return "text" if absent and rule.get("type") in ("string", None) else "json"


def _shown(kind: str, now: Any) -> str:
    if isinstance(now, str) and kind != "json":
        return now
    return json.dumps(now, ensure_ascii=False, indent=2 if kind == "json" else None)


def read(form: Form, asked: Sequence[Field], before: Mapping[str, Any]) -> tuple[dict[str, Any], list[Field]]:
    """The object that was typed, and the fields as they stand now: one with a `problem` is not in the object.

    A field left empty that the object lacks, and need not have, is left out. What the form does not send stays as it
    was `before`.
    """
    typed = dict(form.fields)
    value: dict[str, Any] = {}
    seen = []
    for field in asked:
        given = typed.get(PREFIX + field.name)
        if given is None or (field.absent and not field.required and not given.strip()):
            seen.append(field)
            if given is None and field.name in before:
                value[field.name] = before[field.name]
            continue
        problem = None
        try:
            value[field.name] = _read(field.kind, given)
        except (text.NotJson, text.BadJson) as error:
            problem = str(error)
        seen.append(_now(field, given, problem))
    return value, seen


def _now(field: Field, given: str, problem: str | None) -> Field:
    return Field(field.name, field.kind, given, field.options, field.required, field.absent, field.note, problem)


def _read(kind: str, given: str) -> Any:
    """Digits stay as they are: a long number is not rounded."""
    return given if kind in ("text", "long", "choice") else text.parse(given.strip().encode())
