"""Finds the JSON that was asked for in what a model wrote around it.

Models put JSON in fences, explain it before and after, and think aloud first. Nothing is guessed here: a value is
taken only where it is whole, strict JSON of the asked shape (the type's `output_schema`), and only where the text
holds one such value. Two different ones, a cut one, one inside a broken one: none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable

from board.ports import Json, JsonObject
from integrations.dify.jsontext import clean, is_finite, leaves, read_integer

Fits = Callable[[Json], bool]

# Reasoning models write these around their thoughts; some send the closing tag only.
_REASONING_TAG = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)(?:\s[^<>]{0,200})?>", re.IGNORECASE)
_OPENING = re.compile(r"[{\[]")
# Dify's texts end at 400,000 characters. The limits keep a hostile text from holding up the other tasks of a worker:
# what is longer, or opens more brackets in vain, holds no answer.
MAX_TEXT = 1_000_000
MAX_MISSES = 2_000
_INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060"

_lenient = json.JSONDecoder(parse_int=read_integer)


class BadSchema(Exception):
    """The type's output_schema cannot be used. The message says why."""


def shape(schema: JsonObject) -> Fits:
    """A test for values of the schema's shape (JSON Schema 2020-12). Raises BadSchema.

    References are resolved inside the schema only: the library would otherwise fetch remote ones.
    """
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise BadSchema(error.message) from None
    validator = Draft202012Validator(schema, registry=Registry())

    def fits(value: Json) -> bool:
        try:
            return bool(validator.is_valid(value)) and is_finite(value)
        except Unresolvable as error:
            raise BadSchema(f"it refers to {error.ref!r}, which is not in it") from None
        except RecursionError:
            return False

    return fits


def without_reasoning(text: str) -> str:
    """The text without the model's thoughts.

    A lone closing tag ends thoughts that began with the text; an opening tag without an end begins thoughts that
    were cut off.
    """
    kept: list[str] = []
    start, thinking = 0, False
    for tag in _REASONING_TAG.finditer(text):
        closes = bool(tag[1])
        if not closes and not thinking:
            kept.append(text[start : tag.start()])
        elif closes and not thinking:
            kept.clear()
        thinking = not closes
        start = tag.end()
    if not thinking:
        kept.append(text[start:])
    return "".join(kept)


def is_empty(value: Json) -> bool:
    """True when a value says nothing: no leaf in it, or nothing but null and texts that are blank or only thoughts."""
    return all(
        leaf is None or (isinstance(leaf, str) and not without_reasoning(leaf).strip().strip(_INVISIBLE))
        for leaf in leaves(value)
    )


def find_json(text: str, fits: Fits) -> list[Json]:
    """The different values of the asked shape in a text. Take one only where it is the only one."""
    if len(text) > MAX_TEXT:
        return []
    whole = _strict(text.strip().strip(_INVISIBLE))
    if whole is not None and fits(whole):
        return [whole]
    found: dict[str, Json] = {}
    for piece in _json_pieces(without_reasoning(text)):
        value = _strict(piece)
        if value is not None and fits(value):
            found[json.dumps(value, sort_keys=True)] = value
    return list(found.values())


def find_in_outputs(outputs: Json, fits: Fits) -> tuple[Json, str] | None:
    """The one value of the asked shape, with the text that held it, where exactly one text in the outputs holds one."""
    holders = [(values, text) for text in _texts(outputs) if (values := find_json(text, fits))]
    if len(holders) != 1 or len(holders[0][0]) != 1:
        return None
    values, text = holders[0]
    return values[0], text


def _texts(outputs: Json) -> list[str]:
    return [leaf for leaf in leaves(outputs) if isinstance(leaf, str)]


def _json_pieces(text: str) -> list[str]:
    """The outermost whole JSON objects and arrays in a text.

    After a failure the search goes on where the reader stopped, so nothing inside a broken or cut structure is
    taken for the answer, and the time stays linear. In `{docs}` the reader stops at once; a text that was not closed
    takes everything behind it.
    """
    pieces: list[str] = []
    position = misses = 0
    while opening := _OPENING.search(text, position):
        start = opening.start()
        try:
            _, position = _lenient.raw_decode(text, start)
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated string"):
                break
            position = max(start + 1, error.pos)
            misses += 1
            if misses > MAX_MISSES:
                return []
        except RecursionError:
            break
        else:
            pieces.append(text[start:position])
    return pieces


def _strict(text: str) -> Json | None:
    """The object or array in the text; None where it is no strict JSON: NaN, Infinity, one key twice."""
    if not text.startswith(("{", "[")):
        return None
    try:
        return clean(
            json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_int=read_integer)
        )
    except (ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, Json]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("one key twice")
    return members


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON")
