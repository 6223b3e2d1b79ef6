"""Calls off a run whose task was cancelled while no attempt held it: in the middle of a form, or between two looks.

The stop call answers success whatever happens, and nobody has seen it end a run that waits for a form: only what Dify
shows afterwards is believed and told. What ends such a run for certain is an action of its own form, where the type
names one (`cancel_action`).
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from board.ports import HttpError, Json, JsonObject, SentOperation, Withdrawn
from integrations.dify.client import ENDED, PAUSED, WORKFLOWS, CannotLookUp, Client, Run, mapping_of, text_of
from integrations.dify.errors import ApiError
from integrations.dify.follow import CLOCK_MARGIN
from integrations.dify.human import board_form
from integrations.dify.jsontext import loads_object
from integrations.dify.live import reasons_of
from integrations.dify.modes import RUN_BY_ENGINE
from integrations.dify.sse import EventTooLarge, read_events

PICTURE_SECONDS = 10.0  # the picture of a run comes at once; what it says after that is not waited for
LOOKS = 4  # after the stop call: a node that works is stopped at its end only
UNUSED = "What it brings is not used."
NO_RESULT = frozenset({"failed", "stopped"})  # ends after which there is nothing to take over


@dataclass(slots=True)
class _Picture:
    """What a run's events show of it. form: that it waits with, empty where it waits with none."""

    task_id: str = ""
    form: JsonObject | None = None


async def call_off(
    client: Client, operation: SentOperation, calls: str, cancel_action: str | None, pause: float
) -> Withdrawn:
    """End the run of an operation as far as Dify lets it, and say how it stands. Raises HttpError.

    calls: the path of the calls that stop it. cancel_action: the form's action that means “no”. pause: seconds between
    two looks.
    """
    try:
        if calls != WORKFLOWS and text_of(await client.info(), "mode") not in RUN_BY_ENGINE:
            return Withdrawn(f"Dify cannot be told to stop an answer of this app when nobody listens to it. {UNUSED}")
        run_id = operation.reference
        if run_id is None and calls == WORKFLOWS:
            run_id = await _started(client, operation)
            if run_id is None:
                return _not_there(client, operation)
        if run_id is None:  # the run log lists workflows only
            return Withdrawn(f"The line broke before Dify named the run, so it could not be stopped. {UNUSED}")
        run = await client.run_detail(run_id)
        if run.status in ENDED:
            return _ended(run, f"The run {run_id} had ended in Dify ({run.status}); nothing was to be stopped.")
        picture = await _picture(client, run, operation.user)
        pressed = False
        if cancel_action and run.status == PAUSED and picture.form is not None:
            pressed = await _press(client, picture.form, cancel_action, operation.user)
        if not pressed:
            if not picture.task_id:
                return Withdrawn(f"Dify does not show how to stop the run {run_id}: it goes on there. {UNUSED}")
            await client.stop(picture.task_id, operation.user, kind=calls)
        run = await _look(client, run_id, pause)
    except CannotLookUp as error:
        return Withdrawn(f"What was begun in Dify could not be stopped: {error}.")
    except ApiError as error:
        told = f"What was begun in Dify could not be stopped. {client.failure(error).message}"
        return Withdrawn(told, again=pause if error.unsure or error.status == 429 else None)
    if pressed:
        return _ended(run, f"The form of the run {run_id} was answered with “{cancel_action}”; it is now {run.status}.")
    if run.status == "stopped":
        return _ended(run, f"The run {run_id} was stopped in Dify.")
    return _ended(run, f"Dify was asked to stop the run {run_id} and said yes, {_yet(run, picture)}")


def _yet(run: Run, picture: _Picture) -> str:
    if run.status != PAUSED:
        return f"yet it is {run.status}. {UNUSED}"
    expires = board_form(picture.form)["expires_at"] if picture.form else None
    until = f", which expires at {expires}" if expires else ""
    return f"yet it still waits with its form{until}. {UNUSED}"


def _ended(run: Run, message: str) -> Withdrawn:
    return Withdrawn(message, over=run.status in NO_RESULT)


def _not_there(client: Client, operation: SentOperation) -> Withdrawn:
    sent_at = operation.sent_at if operation.sent_at.tzinfo else operation.sent_at.replace(tzinfo=UTC)
    left = client.grace - (datetime.now(UTC) - sent_at).total_seconds()
    message = "Dify's run log shows no run for this request, so there was nothing to be stopped."
    return Withdrawn(message, over=True, again=None) if left <= 0 else Withdrawn(message, again=left)


async def _started(client: Client, operation: SentOperation) -> str | None:
    """The id of the run that was lost before its id was seen."""
    runs = await client.runs_of(operation.user, operation.sent_at - CLOCK_MARGIN)
    return runs[0].id if runs else None


async def _picture(client: Client, run: Run, user: str) -> _Picture:
    """How the run stands, as its events begin. Empty where this Dify does not show them."""
    picture = _Picture()
    with suppress(ApiError, HttpError, EventTooLarge, TimeoutError):
        async with (
            asyncio.timeout(PICTURE_SECONDS),
            client.events(run.id, user, past_pause=False) as answer,
        ):
            if 200 <= answer.status < 300:
                async with aclosing(read_events(answer.chunks())) as events:
                    async for event in events:
                        whole = _see(picture, loads_object(event.data or "") or {})
                        if whole or (picture.task_id and run.status != PAUSED):
                            break
    return picture


def _see(picture: _Picture, message: JsonObject) -> bool:
    """Whether no more of it comes."""
    picture.task_id = picture.task_id or text_of(message, "task_id")
    data = mapping_of(message, "data")
    match message.get("event"):
        case "human_input_required":
            picture.form = data
        case "workflow_paused":
            picture.form = picture.form or next(iter(reasons_of(data)), None)
            return True
        case "workflow_finished" | "error":
            return True
    return False


async def _press(client: Client, form: JsonObject, action: str, user: str) -> bool:
    """Answer the form with its own “no”. False where Dify does not take that."""
    shown = board_form(form)
    token = text_of(form, "form_token")
    if not token or action not in [it["id"] for it in shown["actions"]]:
        return False
    inputs: dict[str, Json] = {}
    for field in shown["fields"]:
        if field["kind"] in ("file", "files"):
            return False
        inputs[field["name"]] = field["default"] or (field["options"][0] if field["options"] else "-")
    body = json.dumps({"inputs": inputs, "action": action, "user": user}, ensure_ascii=False).encode()
    try:
        await client.answer_form(token, body)
    except ApiError as error:
        if error.unsure:
            raise
        return False
    return True


async def _look(client: Client, run_id: str, pause: float) -> Run:
    """The run once it has ended, or as it stands after a few looks."""
    run = await client.run_detail(run_id)
    for _ in range(LOOKS - 1):
        if run.status in ENDED:
            break
        await asyncio.sleep(pause)
        run = await client.run_detail(run_id)
    return run
