"""Dify's Human Input node: its form as the board shows it, and a person's answer as Dify takes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from board.ports import FormAnswer, JobFiles, Json, JsonObject, NeedsInput
from integrations.dify.client import Client, Run, text_of
from integrations.dify.errors import ApiError
from integrations.dify.files import BadFile, file_item, uploaded
from integrations.dify.jsontext import one_line

# The one answer to a form that only Dify can take: it has no web-app delivery, or this Dify has no calls for it.
LOOK_AGAIN = "look_again"
_KINDS = {"paragraph": "text", "text-input": "text", "select": "choice", "file": "file", "file-list": "files"}
MOST_CONTENT = 50_000  # characters of a form's text; nobody reads more


class FormRefused(Exception):
    """Dify did not take an answer; its form is still open. The message is a plain sentence."""


def needs_input(run: Run, forms: Sequence[JsonObject], said: str = "") -> NeedsInput:
    """What the board asks a person. forms: those that are open, as Dify told them. said: why it is asked again."""
    form = board_form(forms[0]) if forms else {"id": run.id, "title": "", "content": "", "expires_at": None}
    if not forms or not text_of(forms[0], "form_token"):
        form |= {"fields": [], "actions": [{"id": LOOK_AGAIN, "title": None}]}
        said = said or "It can only be answered in Dify; afterwards let the board look again."
    message = f"The workflow waits for a person: {form['title'] or 'a form in Dify'}."
    return NeedsInput(f"{message} {said}".strip(), form, run.id or None)


def board_form(data: JsonObject) -> JsonObject:
    """The form of a `human_input_required` event. Its token is no part of it: that opens the form to everybody."""
    defaults = data.get("resolved_default_values")
    defaults = defaults if isinstance(defaults, dict) else {}
    actions = [it for it in _rows(data, "actions", "user_actions") if text_of(it, "id")]
    return {
        "id": _id_of(data),
        "title": one_line(text_of(data, "node_title"), 200),
        "content": text_of(data, "form_content")[:MOST_CONTENT],
        "fields": [_field(it, defaults) for it in _rows(data, "inputs") if text_of(it, "output_variable_name")],
        "actions": [{"id": text_of(it, "id"), "title": one_line(text_of(it, "title"), 100)} for it in actions],
        "expires_at": _moment(data.get("expiration_time")),
    }


def is_form(data: JsonObject, form_id: str) -> bool:
    return _id_of(data) == form_id


async def give(client: Client, user: str, data: JsonObject, answer: FormAnswer, files: JobFiles) -> None:
    """Answer Dify's form. Somebody else may have done so before, or it has expired: then the run tells what follows.

    Raises FormRefused, and what the client raises.
    """
    kinds = {it["name"]: it["kind"] for it in board_form(data)["fields"]}
    try:
        inputs = {name: _value(kinds.get(name, "text"), value) for name, value in answer.inputs.items()}
        inputs = await uploaded(client, user, inputs, files)
    except BadFile as error:
        raise FormRefused(f"The answer was not sent: a file {error}.") from None
    except ApiError as error:
        if error.unsure:
            raise
        raise FormRefused(f"The answer was not sent: {client.failure(error).message}") from None
    try:
        body = json.dumps({"inputs": inputs, "action": answer.action, "user": user}, ensure_ascii=False).encode()
        await client.answer_form(text_of(data, "form_token"), body)
    except ApiError as error:
        if error.status in (404, 412):
            return
        if error.code == "invalid_form_data":
            raise FormRefused(client.failure(error).message) from None
        raise


def without(forms: Sequence[JsonObject], data: JsonObject) -> list[JsonObject]:
    """The open forms without the one of the same node: it was filled in, or its time is over."""
    return [it for it in forms if text_of(it, "node_id") != text_of(data, "node_id")]


def _value(kind: str, value: Json) -> Json:
    if kind == "file":
        return file_item(value)
    if kind == "files":
        return [file_item(it) for it in (value if isinstance(value, list) else [value])]
    return value


def _field(data: JsonObject, defaults: JsonObject) -> JsonObject:
    name = text_of(data, "output_variable_name")
    options = data.get("options")
    if not isinstance(options, list):  # newer releases name the source of the options
        source = data.get("option_source")
        options = source.get("value") if isinstance(source, dict) else None
    texts = [it for it in options if isinstance(it, str)] if isinstance(options, list) else []
    default = defaults.get(name)
    kind = _KINDS.get(text_of(data, "type"), "text")
    return {"name": name, "kind": kind, "options": texts, "default": default if isinstance(default, str) else None}


def _rows(data: JsonObject, *names: str) -> list[JsonObject]:
    found: list[Json] = next((data[name] for name in names if isinstance(data.get(name), list)), [])
    return [it for it in found if isinstance(it, dict)]


def _id_of(data: JsonObject) -> str:
    return text_of(data, "form_id") or text_of(data, "node_id")


def _moment(value: Json) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e11:
        return None
    return datetime.fromtimestamp(value, UTC).isoformat()
