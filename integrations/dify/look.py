"""Looks at a Dify connection without starting anything: address, key, app, and whether the types that use it fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from board.ports import ConnectionUser, ConnectionView, Http, HttpError, Tried
from integrations.dify.client import BadConnection, Client, text_of
from integrations.dify.errors import ApiError
from integrations.dify.inputs import Form, read_form
from integrations.dify.modes import MODES, ONLY_STREAM, misuse

# What a handler takes out of its inputs itself, whatever the app's form is.
TAKEN = frozenset({"query", "conversation_id", "files", "user"})


async def look(connection: ConnectionView, http: Http, users: Sequence[ConnectionUser]) -> list[Tried]:
    """Everything worth telling. The first thing that is wrong ends it: what comes after hangs on it."""
    try:
        client = Client(http, connection)
    except BadConnection as error:
        return [Tried("wrong", str(error))]
    found = []
    try:
        version = text_of(await client.welcome(), "server_version")
        found.append(Tried("ok", f"Dify answers{f', version {version}' if version else ''}."))
    except ApiError:
        pass  # a gateway may keep this call back; the next ones tell
    except HttpError as error:
        return [Tried("wrong", f"Dify cannot be reached: {str(error).rstrip('.')}. Check `url`.")]
    try:
        info = await client.info()
        form = read_form(await client.parameters())
    except ApiError as error:
        return [*found, Tried("wrong", client.failure(error).message)]
    except HttpError as error:
        return [*found, Tried("wrong", f"Dify's answer was lost: {str(error).rstrip('.')}.")]
    mode = text_of(info, "mode")
    found.append(_app(client.told(text_of(info, "name")), mode, form))
    for user in users:
        found += _used(user, mode, form)
    return found


def _app(name: str, mode: str, form: Form | None) -> Tried:
    if mode not in MODES:
        return Tried("warning", f"The key opens the app “{name}” of a kind that is not known here ({mode or 'none'}).")
    fields = ", ".join(f"{it.name}{' (required)' if it.required else ''}" for it in (form or {}).values())
    kind, handler = MODES[mode]
    return Tried(
        "ok", f"The key opens the {kind} “{name}” (use {handler}). Its start form has: {fields or 'no fields'}."
    )


def _used(user: ConnectionUser, mode: str, form: Form | None) -> Iterator[Tried]:
    if problem := misuse(user.use, mode):
        yield Tried("wrong", f"Type {user.type}: {problem}.")
        return
    if user.handler.get("wait") == "blocking" and mode in ONLY_STREAM:
        yield Tried("wrong", f"Type {user.type}: a {MODES[mode][0]} only streams; leave `wait: blocking` out.")
    inputs: Mapping[str, Any] | None = user.handler.get("inputs")
    if inputs is None or form is None:
        return
    if unknown := sorted(set(inputs) - set(form) - TAKEN):
        yield Tried("wrong", f"Type {user.type}: the app's start form has no field {_names(unknown)}.")
    if missing := sorted(name for name, it in form.items() if it.required and name not in inputs):
        yield Tried("wrong", f"Type {user.type}: `inputs` lack {_names(missing)}, which the app's start form requires.")


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"“{name}”" for name in names[:10])
