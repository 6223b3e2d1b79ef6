"""From a request to a run that lives by itself, and the answer its caller gets; and POST /workflows/run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncGenerator
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from integrations.demo.apps import DemoApp
from integrations.demo.engine import paused, play
from integrations.demo.faults import FAULTS, BadFault, Plan
from integrations.demo.runs import BY_ENGINE, ENDED, Run
from integrations.demo.standin import StandIn, enter_with_body, http_answer
from integrations.demo.streams import answer
from integrations.demo.uploads import files_of
from integrations.demo.wire import (
    CUT,
    DifyError,
    JsonObject,
    Streamed,
    invalid_param,
    json_answer,
    not_found,
    unless_gone,
)

USER_LENGTH = 255  # the width of Dify's database column


async def run_workflow(request: Request) -> Response:
    standin, app, body = await enter_with_body(request)
    if app.mode != "workflow":
        raise DifyError(400, "not_workflow_app", "Please check if your app mode matches the right API route.")
    check_version(app, request.path_params.get("workflow_id"))
    return await begin(request, standin, app, body)


async def begin(
    request: Request, standin: StandIn, app: DemoApp, body: JsonObject, query: str = "", conversation_id: str = ""
) -> Response:
    """Start a run and answer in the asked mode; a missing response_mode is blocking."""
    user_of(body)
    given = body.get("inputs")
    if not isinstance(given, dict):
        raise invalid_param("inputs is required and must be an object.")
    mode = body.get("response_mode") or "blocking"
    if mode not in ("blocking", "streaming"):
        raise invalid_param("response_mode must be blocking or streaming.")

    plan = _plan(standin, body, given | {"": query})
    if plan.forget_files:
        standin.uploads.by_id.clear()
    if plan.http_status is not None and not plan.start:
        return await unless_gone(request.receive, http_answer(plan)) or Response()
    run: Run | None = None
    if plan.start:
        try:
            run = _prepare(standin, app, body, plan)
            run.query, run.conversation_id = query, conversation_id
        except DifyError as error:
            if mode == "blocking" or app.mode not in BY_ENGINE:
                raise
            # Streamed runs are checked in Dify's background worker, which can only send an event without a code.
            plan = replace(FAULTS["error_event_no_code"], message=error.message)
    if run is not None:
        standin.book.add(run, play(run, standin.pace.run))
    if plan.http_status is not None:
        return await unless_gone(request.receive, http_answer(plan)) or Response()
    if mode == "streaming":
        headers = {"X-Workflow-Run-ID": run.id} if run and plan.run_id_header else {}
        return Streamed(_heard(run, answer(run, plan, standin.pace)), headers=headers)
    return await _block(request, run, plan)


def user_of(body: JsonObject) -> str:
    """The caller's `user`. Raises DifyError."""
    user = body.get("user")
    if not isinstance(user, str) or not user:
        raise invalid_param("Arg user must be provided.")
    if len(user) > USER_LENGTH:
        raise DifyError(500, "internal_server_error", "Internal Server Error")
    return user


def check_version(app: DemoApp, workflow_id: str | None) -> None:
    if workflow_id is None:
        return
    try:
        wanted = str(uuid.UUID(workflow_id))
    except ValueError:
        raise DifyError(400, "bad_request", f"Invalid workflow_id format: {workflow_id}") from None
    if wanted != app.workflow_id:
        raise not_found("Workflow not found.")


def _plan(standin: StandIn, body: JsonObject, inputs: JsonObject) -> Plan:
    try:
        queued = standin.faults.take("run", json.dumps(body, ensure_ascii=False))
        return queued or standin.faults.asked_for(inputs) or Plan()
    except BadFault as error:
        raise invalid_param(f"Demo stand-in: {error}") from None


def _prepare(standin: StandIn, app: DemoApp, body: JsonObject, plan: Plan) -> Run:
    """A run that is not yet begun. Raises DifyError when inputs or files are refused."""
    user, inputs = body["user"], app.accept(body["inputs"])
    items = standin.uploads.check(files_of(app, inputs, body.get("files")), app, user)
    return Run(app, user, inputs, plan, plan.run_id or str(uuid.uuid4()), [] if plan.hide_files else items)


async def _block(request: Request, run: Run | None, plan: Plan) -> Response:
    """The blocking answer: a failed run is HTTP 200 too."""
    if plan.event_status is not None:
        raise DifyError(plan.event_status, plan.code or "internal_server_error", plan.message)
    if run is None or plan.until != "end":
        return Streamed(_broken(plan), "application/json")
    await unless_gone(request.receive, run.settled())
    if run.app.mode != "workflow":
        return _message(run)
    data = run.result()
    if run.status == "paused":
        data |= paused(run)
    return json_answer({"task_id": run.task_id, "workflow_run_id": run.id, "data": data})


def app_talks(run: Run) -> bool:
    return run.app.mode != "workflow"


def _message(run: Run) -> Response:
    """The blocking answer of a chat or completion app: here a failure is HTTP 400."""
    talk = {} if run.app.mode == "completion" else {"conversation_id": run.conversation_id}
    ids = {"task_id": run.task_id, "id": run.message_id, "message_id": run.message_id, **talk, "mode": run.app.mode}
    if run.status == "failed" and run.by_engine:
        raise invalid_param(f"Run failed: {run.error}")
    if run.status == "failed":
        raise DifyError(400, "completion_request_error", run.error or "")
    if run.status == "paused":
        return json_answer({"event": "workflow_paused", "workflow_run_id": run.id, **ids, "data": paused(run)})
    at = {"created_at": int(run.created_at or 0)}
    return json_answer({"event": "message", **ids, "answer": run.answer, "metadata": run.usage(), **at})


async def _heard(run: Run | None, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """A stream to its end. Apps that answer in the API's own process lose the answer when nobody listens any more."""
    try:
        async with contextlib.aclosing(pieces):
            async for piece in pieces:
                yield piece
    finally:
        if run is not None and not run.by_engine and run.status not in ENDED:
            run.lost = not run.plan.keeps_answer


async def _broken(plan: Plan) -> AsyncGenerator[bytes, None]:
    """A blocking body that never comes: cut, empty, or awaited for ever."""
    if plan.ending in ("hold", "stall"):
        await asyncio.Event().wait()
    if plan.ending == "cut":
        yield CUT
