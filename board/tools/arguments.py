"""What a verb takes, described once: the flat document for Dify and the schemas for MCP are both made from it.

A language model fills these in, and Dify's importer knows little more than texts (docs/dify-tools.md). So every value
may come as text: an object as JSON text, a list as comma text, a number as digits. An empty text, and null, mean that
the value is not given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from board.api.errors import ApiError
from board.tasks.text import BadJson, NotJson, parse


class Kind(StrEnum):
    TEXT = "text"
    CHOICE = "choice"
    LIST = "list"  # of texts
    NUMBER = "number"
    OBJECT = "object"
    VALUE = "value"  # any JSON


_AS_JSON = (Kind.OBJECT, Kind.VALUE)
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
_SCHEMA: dict[Kind, dict[str, Any]] = {
    Kind.TEXT: {"type": "string"},
    Kind.CHOICE: {"type": "string"},
    Kind.LIST: {"type": "array", "items": {"type": "string"}},
    Kind.NUMBER: {"type": "number"},
    Kind.OBJECT: {"type": "object"},
    Kind.VALUE: {},
}


@dataclass(frozen=True, slots=True)
class Argument:
    """One value that a verb takes. about: what it is, in words for a model."""

    name: str
    about: str
    kind: Kind = Kind.TEXT
    required: bool = False
    choices: Sequence[str] = ()

    @property
    def flat_name(self) -> str:
        """Its name where only texts can be sent; it says that JSON is wanted."""
        return f"{self.name}_json" if self.kind in _AS_JSON else self.name

    @property
    def flat_about(self) -> str:
        how = {
            Kind.OBJECT: ' Write it as the text of a JSON object, such as {"name": "value"}.',
            Kind.VALUE: ' Write it as JSON text, such as {"name": "value"}.',
            Kind.LIST: " Separate several with commas.",
            Kind.NUMBER: " Write it in digits.",
        }
        return f"{self.about}{how.get(self.kind, '')}{self._choices()}"

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the value, for callers that know objects and lists."""
        of_choices = {"enum": [str(it) for it in self.choices]} if self.choices else {}
        shape = _SCHEMA[self.kind]
        shape = shape | ({"items": shape["items"] | of_choices} if self.kind is Kind.LIST else of_choices)
        return {**shape, "description": f"{self.about}{self._choices()}"}

    def _choices(self) -> str:
        if not self.choices:
            return ""
        several = "One or more" if self.kind is Kind.LIST else "One"
        return f" {several} of: {', '.join(self.choices)}."


class Given:
    """The values of one call, read. `text`, `names`, … answer None or empty where nothing was given."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def text(self, name: str) -> str | None:
        found: str | None = self._values.get(name)
        return found

    def needed(self, name: str) -> str:
        """A required text; reading has made sure of it."""
        return str(self._values[name])

    def names(self, name: str) -> list[str]:
        return list(self._values.get(name, ()))

    def number(self, name: str) -> float | None:
        found: float | None = self._values.get(name)
        return found

    def object(self, name: str) -> dict[str, Any]:
        return dict(self._values.get(name, {}))

    def value(self, name: str) -> Any:
        return self._values.get(name)

    def has(self, name: str) -> bool:
        return name in self._values


def read(arguments: Sequence[Argument], raw: Any) -> Given:
    """The values of a call by their names, the flat ones too. Raises ApiError 422 that says what to send instead."""
    if not isinstance(raw, dict):
        raise _wrong("body", "send a JSON object with the arguments")
    known = {name: it for it in arguments for name in (it.name, it.flat_name)}
    values: dict[str, Any] = {}
    for name, value in raw.items():
        if name not in known:
            takes = ", ".join(it.flat_name for it in arguments)
            problem = f"“{name[:100]}” is not an argument of this tool; it takes {takes}."
            raise ApiError(422, "unknown_field", problem, [{"field": name[:100], "message": problem}])
        if not _absent(value):
            values[known[name].name] = _read(known[name], name, value)
    for it in arguments:
        if it.required and it.name not in values:
            raise _wrong(it.flat_name, f"is missing. {it.about}")
    return Given(values)


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _read(argument: Argument, name: str, value: Any) -> Any:
    match argument.kind:
        case Kind.TEXT:
            return _text(name, value)
        case Kind.CHOICE:
            return _chosen(argument, name, _text(name, value).strip())
        case Kind.LIST:
            return [_chosen(argument, name, item) for item in _list(name, value)]
        case Kind.NUMBER:
            return _number(name, value)
        case Kind.OBJECT:
            found = _json(name, value)
            if not isinstance(found, dict):
                raise _wrong(name, 'must be a JSON object, such as {"name": "value"}')
            return found
        case Kind.VALUE:
            return _json(name, value)


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _wrong(name, "must be text")
    return str(value)


def _number(name: str, value: Any) -> float:
    text = _text(name, value).strip()
    if not _NUMBER.fullmatch(text):
        raise _wrong(name, f"“{text[:100]}” is not a number; write it in digits, such as 30 or 0.8")
    return float(text)


def _list(name: str, value: Any) -> list[str]:
    if isinstance(value, str) and value.strip().startswith("["):
        value = _json(name, value)
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list):
        raise _wrong(name, "must be a list, or text with commas")
    return [text for item in value if not _absent(item) and (text := _text(name, item).strip())]


def _chosen(argument: Argument, name: str, text: str) -> str:
    if not argument.choices or text in argument.choices:
        return text
    same = [it for it in argument.choices if it.lower() == text.lower()]
    if not same:
        raise _wrong(name, f"“{text[:100]}” is not possible here; use one of: {', '.join(argument.choices)}")
    return same[0]


def _json(name: str, value: Any) -> Any:
    """A value that came as JSON, or as the text of JSON."""
    if not isinstance(value, str):
        return value
    try:
        return parse(value.encode("utf-8", "surrogatepass"))
    except NotJson as error:
        if value.lstrip()[:1] in ("{", "[") and "'" in value:  # how Dify writes an object into a text argument
            raise _wrong(
                name, "is not JSON: names and texts stand between double quotes there, not single ones"
            ) from error
        why = str(error).removeprefix("The body is not valid JSON: ").rstrip(".")
        raise _wrong(name, f"is not valid JSON ({why}); send the text of one JSON value") from error
    except BadJson as error:
        raise _wrong(name, f"{error.path} {error}") from error


def _wrong(field: str, message: str) -> ApiError:
    sentence = message.rstrip(".") + "."
    return ApiError(422, "invalid_field", f"{field}: {sentence}", [{"field": field, "message": message}])
