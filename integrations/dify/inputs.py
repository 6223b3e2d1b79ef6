"""Checks a task's inputs against the app's start form before anything is sent.

Dify drops inputs that its form does not declare without a word, and a streamed run reports a missing one only after
it has started. Both are found here, by name. Values are converted only where nothing can be lost by it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from board.ports import Cause, ConnectionView, ErrorClass, Failure, Json, JsonObject, Lost, NotSent
from integrations.dify.client import Client, text_of
from integrations.dify.errors import ApiError
from integrations.dify.files import BadFile, file_item
from integrations.dify.jsontext import loads_object
from integrations.dify.modes import misuse

# How long a form is believed. Short: the app may be published anew at any time. A problem found with an old form is
# never told before the form was read again.
FORM_AGE = 60.0

_TEXT = frozenset({"text-input", "paragraph", "select", "external_data_tool"})
_NOTHING = (None, "")
_NUMBER = re.compile(r"\s*[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*")  # Python would also read 1_000 and ١٢
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True, slots=True)
class Field:
    """One variable of the start form."""

    name: str
    kind: str
    required: bool
    max_length: int | None
    options: tuple[str, ...]


Form = Mapping[str, Field]


class Problem(ValueError):
    """An input that the start form does not take. The message is a plain clause that names it."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Inputs as Dify takes them; files that must be uploaded first stand in them as `Upload`.

    beside: what the request itself takes, as it was given. mode: the app's, empty where it does not tell.
    """

    inputs: JsonObject
    beside: JsonObject
    mode: str


@dataclass(frozen=True, slots=True)
class _App:
    read_at: float
    form: Form | None
    mode: str


class Forms:
    """The start forms and modes of the apps, each read again after FORM_AGE seconds."""

    def __init__(self) -> None:
        self._known: dict[str, _App] = {}

    async def fit(
        self,
        client: Client,
        connection: ConnectionView,
        inputs: JsonObject,
        *,
        use: str,
        strict: bool,
        beside: Collection[str] = (),
    ) -> Fitted | Failure:
        """The inputs as Dify takes them, or why nothing was sent.

        use: the handler that asks. strict: an input that the form lacks is a problem when it says something; otherwise
        it is left out. beside: names that the request itself takes, where the form has no field of that name.
        """
        # The key itself is not kept: this outlives the attempt.
        digest = hashlib.sha256(f"{connection.url} {connection.secrets.get('key', '')}".encode()).hexdigest()
        now = time.monotonic()
        app = self._known.get(digest)
        if app is not None and now - app.read_at < FORM_AGE:
            try:
                return _fitted(app, inputs, use=use, strict=strict, beside=beside)
            except Problem:
                pass
        try:
            parameters, mode = await asyncio.gather(client.parameters(), _mode(client))
            app = _App(now, read_form(parameters), mode)
        except ApiError as error:
            # An app or a gateway without this call cannot say what it takes; the run itself will tell.
            if error.status not in (404, 405, 501):
                return client.failure(error)
            app = _App(now, None, "")
        except (NotSent, Lost) as error:
            return Failure(ErrorClass.TRANSIENT, Cause.NETWORK, f"Dify cannot be reached, nothing was sent: {error}")
        self._known = {key: entry for key, entry in self._known.items() if now - entry.read_at < FORM_AGE}
        self._known[digest] = app
        try:
            return _fitted(app, inputs, use=use, strict=strict, beside=beside)
        except Problem as problem:
            return Failure(
                ErrorClass.PERMANENT, Cause.PRECONDITION, f"Nothing was sent to Dify: {problem}", code="inputs"
            )


async def _mode(client: Client) -> str:
    try:
        return text_of(await client.info(), "mode")
    except (ApiError, NotSent, Lost):
        return ""  # an old Dify does not tell; the run itself will


def _fitted(app: _App, inputs: JsonObject, *, use: str, strict: bool, beside: Collection[str]) -> Fitted:
    """Raises Problem with whole sentences."""
    if problem := misuse(use, app.mode):
        raise Problem(f"{problem[0].lower()}{problem[1:]}.")
    taken = {name for name in beside if name not in (app.form or {})}
    asked = {name: value for name, value in inputs.items() if name in taken}
    inputs = {name: value for name, value in inputs.items() if name not in taken}
    try:
        return Fitted(inputs if app.form is None else convert(app.form, inputs, strict=strict), asked, app.mode)
    except Problem as problem:
        raise Problem(
            f"{problem}. Correct `handler.inputs` of the task type, the payload, or the app's start form."
        ) from None


def read_form(parameters: JsonObject) -> Form | None:
    """The start form from GET /parameters; None where it declares nothing that could be checked."""
    rows = parameters.get("user_input_form")
    form: dict[str, Field] = {}
    for row in rows if isinstance(rows, list) else []:
        for kind, spec in row.items() if isinstance(row, dict) else ():
            name = spec.get("variable") if isinstance(spec, dict) else None
            if not isinstance(name, str) or not name:
                continue
            length, options = spec.get("max_length"), spec.get("options")
            form[name] = Field(
                name=name,
                kind=str(spec.get("type") or kind),
                required=spec.get("required") is True,
                max_length=length if isinstance(length, int) and length > 0 else None,
                options=tuple(option for option in options if isinstance(option, str))
                if isinstance(options, list)
                else (),
            )
    return form or None


def convert(form: Form, inputs: JsonObject, *, strict: bool) -> JsonObject:
    """The inputs in the form's own types. Raises Problem with every name at fault."""
    problems: list[str] = []
    fitted: JsonObject = {}
    for name, value in inputs.items():
        field = form.get(name)
        if field is None:
            if strict and value not in _NOTHING:
                problems.append(f"the app's start form has no field “{name}” (it has {_listed(form)})")
        elif not _blank(field, value):
            try:
                fitted[name] = _value(field, value)
            except Problem as problem:
                problems.append(str(problem))
        elif value == "" and not field.required:
            fitted[name] = value if field.kind in _TEXT else None
    missing = [name for name, field in form.items() if field.required and _blank(field, inputs.get(name))]
    if missing:
        problems.append(f"required by the app's start form and missing or empty: {', '.join(missing)}")
    if problems:
        raise Problem("; ".join(problems))
    return {name: value for name, value in fitted.items() if value is not None}


def _blank(field: Field, value: Json) -> bool:
    """Nothing is given. A payload that has no files at hand often says so with an empty list."""
    return value in _NOTHING or (field.kind in ("file", "file-list") and value == [])


def _listed(form: Form) -> str:
    names = list(form)
    return ", ".join(names[:10]) + (", …" if len(names) > 10 else "")


def _value(field: Field, value: Json) -> Any:
    if field.kind in _TEXT:
        return _text(field, value)
    if field.kind == "number":
        return _number(field, value)
    if field.kind == "checkbox":
        known = value if isinstance(value, bool) else _BOOLEANS.get(str(value).strip().lower())
        if known is None:
            raise Problem(f"“{field.name}” must be true or false")
        return known
    if field.kind == "json_object":
        parsed = loads_object(value) if isinstance(value, str) else value
        if not isinstance(parsed, dict):
            raise Problem(f"“{field.name}” must be a JSON object")
        return parsed
    if field.kind in ("file", "file-list"):
        return _files(field, value)
    return value  # a kind of a newer Dify: it will judge itself


def _files(field: Field, value: Json) -> Any:
    items = value if isinstance(value, list) else [value]
    if field.kind == "file" and len(items) != 1:
        raise Problem(f"“{field.name}” takes exactly one file, not {len(items)}")
    try:
        taken = [file_item(item) for item in items]
    except BadFile as error:
        raise Problem(f"“{field.name}” {error}") from None
    return taken if field.kind == "file-list" else taken[0]


def _text(field: Field, value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if field.max_length is not None and len(text) > field.max_length:
        raise Problem(f"“{field.name}” has {len(text)} characters, the app's start form takes {field.max_length}")
    if field.kind == "select" and field.options and text not in field.options:
        raise Problem(f"“{field.name}” must be one of {', '.join(field.options[:20])}")
    return text


def _number(field: Field, value: Json) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    try:
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            return float(value) if any(mark in value for mark in ".eE") else int(value)
    except ValueError:
        pass
    raise Problem(f"“{field.name}” must be a number")
