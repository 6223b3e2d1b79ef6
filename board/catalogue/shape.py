"""JSON Schema as types use it: checked when the type is applied, so that no value can ever break the check itself.

References reach only inside the schema (`#/$defs/…`): the library's own way of fetching them from the net would be a
second door to the outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import NoSuchResource, Unresolvable

MAX_MESSAGE = 300  # characters of a problem's text: the library repeats the whole value in it


def problem_of_schema(schema: dict[str, Any]) -> str | None:
    """What is wrong with a schema, or None."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"is not a valid JSON Schema: {error.message[:MAX_MESSAGE]}"
    resolver = _validator(schema)._resolver  # the library has no public way to look a reference up
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except (Unresolvable, NoSuchResource, ValueError):
            return (
                f"the reference “{reference}” leads nowhere; only what stands in the schema itself can be referred to"
            )
    return None


def first_problem(schema: dict[str, Any], value: Any) -> tuple[str, str] | None:
    """(path below the value such as `.items[2].name`, message) of the first thing that does not fit; None: it fits."""
    try:
        found = next(_validator(schema).iter_errors(value), None)
    except (ArithmeticError, RecursionError, Unresolvable, re.error) as error:
        # Numbers beyond every float, a schema that refers to itself without end.
        return "", f"cannot be checked against the schema ({type(error).__name__})"
    return None if found is None else (_path(found), found.message[:MAX_MESSAGE])


def _validator(schema: dict[str, Any]) -> Any:
    return Draft202012Validator(schema, registry=Registry())


def _path(error: ValidationError) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            elif key not in ("const", "default", "enum", "examples"):  # there stand values, not schemas
                yield from _references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _references(item)
