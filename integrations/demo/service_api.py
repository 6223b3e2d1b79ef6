"""The other calls of Dify's Service API: about the app, about runs, stopping, re-attaching, the human-input form."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from integrations.demo import chatting, engine
from integrations.demo.runs import BY_ENGINE, ENDED, Run
from integrations.demo.standin import enter, enter_with_body
from integrations.demo.starting import run_workflow, user_of
from integrations.demo.streams import follow
from integrations.demo.uploads import LIMITS, MIB
from integrations.demo.wire import (
    PING,
    DifyError,
    JsonObject,
    Streamed,
    frame,
    invalid_param,
    json_answer,
    not_found,
)

SERVER_VERSION = "1.14.2"  # the release whose behaviour the stand-in follows
KEYWORD_LENGTH = 30  # Dify cuts the log's search word there
LOG_STATUSES = ("succeeded", "failed", "stopped")


async def welcome(request: Request) -> Response:
    return json_answer(
        {"welcome": "Dify OpenAPI (Demo stand-in)", "api_version": "v1", "server_version": SERVER_VERSION}
    )


async def info(request: Request) -> Response:
    _, app = await enter(request)
    about = {"name": app.name, "description": app.description, "tags": ["demo"]}
    return json_answer(about | {"mode": app.mode, "author_name": "Demo stand-in"})


async def parameters(request: Request) -> Response:
    _, app = await enter(request)
    off = {"enabled": False}
    switches = ("suggested_questions_after_answer", "speech_to_text", "text_to_speech", "retriever_resource")
    more = ("annotation_reply", "more_like_this", "sensitive_word_avoidance")
    limits = {f"{kind}_file_size_limit": size // MIB for kind, size in LIMITS.items() if kind != "document"}
    return json_answer(
        {
            "opening_statement": "",
            "suggested_questions": [],
            **dict.fromkeys((*switches, *more), off),
            "user_input_form": [variable.form_item() for variable in app.variables],
            "file_upload": {"enabled": True, "number_limits": 3, "allowed_file_types": ["document", "image"]},
            "system_parameters": limits
            | {"file_size_limit": LIMITS["document"] // MIB, "workflow_file_upload_limit": 10},
        }
    )


async def run_detail(request: Request) -> Response:
    standin, app = await enter(request, "detail")
    run = standin.book.find(app, request.path_params["run_id"])
    if app.mode not in BY_ENGINE:
        raise DifyError(400, "not_workflow_app", "Please check if your app mode matches the right API route.")
    if run is None:
        raise not_found("Workflow run not found.")
    if run.plan.detail == "error":
        raise DifyError(500, "internal_server_error", "Internal Server Error")
    return json_answer(run.detail())


async def stop(request: Request) -> Response:
    """Always success, for unknown ids as well; the user is not compared."""
    standin, _, body = await enter_with_body(request, "stop")
    user_of(body)
    run = standin.book.by_task(request.path_params["task_id"])
    if run is not None:
        engine.stop(run)
    return json_answer({"result": "success"})


async def events(request: Request) -> Response:
    """Re-attach to a run of the same user."""
    standin, app = await enter(request, "events")
    query = request.query_params
    if not query.get("user"):
        raise invalid_param("Arg user must be provided.")
    run = standin.book.find(app, request.path_params["run_id"])
    if run is None or run.user != query["user"]:
        raise not_found("Workflow run not found.")
    if run.status in ENDED:
        return Streamed(_pieces(PING, frame(run.events[-1])))
    snapshot = query.get("include_state_snapshot", "").lower() == "true"
    past_pause = query.get("continue_on_pause", "").lower() == "true"
    picture = [frame(event) for event in _picture(run)] if snapshot else []
    ends = run.status == "paused" and not past_pause
    rest = None if ends else follow(run, standin.pace, len(run.events), past_pause=past_pause)
    return Streamed(_picture_first(picture, rest))


def _picture(run: Run) -> list[JsonObject]:
    """How a run stands: its start, its nodes and, while it is paused, its form. What was said is not repeated."""
    shown = [event for event in run.events if event["event"].startswith(("workflow_started", "node_"))]
    return shown + run.events[-2:] if run.status == "paused" else shown


async def _picture_first(picture: list[bytes], rest: AsyncGenerator[bytes, None] | None) -> AsyncGenerator[bytes, None]:
    yield PING
    for piece in picture:
        yield piece
    if rest is not None:
        async with aclosing(rest):
            async for piece in rest:
                yield piece


async def _pieces(*pieces: bytes) -> AsyncGenerator[bytes, None]:
    for piece in pieces:
        yield piece


async def logs(request: Request) -> Response:
    """Runs of this app, newest first."""
    standin, app = await enter(request, "logs")
    query = request.query_params
    page, limit = _whole(query.get("page"), 1, 1, 99999), _whole(query.get("limit"), 20, 1, 100)
    mine = app if app.mode == "workflow" else None  # chatflow runs are not in this log
    runs = [run for run in reversed(standin.book.runs) if run.app is mine and run.visible]
    for keep in _filters(request):
        runs = [run for run in runs if keep(run)]
    shown = runs[(page - 1) * limit : page * limit]
    return json_answer(
        {
            "page": page,
            "limit": limit,
            "total": len(runs),
            "has_more": page * limit < len(runs),
            "data": [run.log_row() for run in shown],
        }
    )


def _filters(request: Request) -> list[Callable[[Run], bool]]:
    query = request.query_params
    filters: list[Callable[[Run], bool]] = []
    if session := query.get("created_by_end_user_session_id"):
        filters.append(lambda run: run.user == session)
    if query.get("created_by_account"):
        filters.append(lambda run: False)  # accounts start no run through the Service API
    if after := _moment(query.get("created_at__after")):
        filters.append(lambda run: (run.created_at or 0) >= after)
    if before := _moment(query.get("created_at__before")):
        filters.append(lambda run: (run.created_at or 0) <= before)
    if status := query.get("status"):
        if status not in LOG_STATUSES:
            raise invalid_param(f"status must be one of {', '.join(LOG_STATUSES)}.")
        filters.append(lambda run: run.shown_status == status)
    if word := query.get("keyword", "")[:KEYWORD_LENGTH].lower():
        whole = query["keyword"].lower()
        filters.append(lambda run: run.id == whole or word in f"{run.inputs} {run.outputs} {run.user}".lower())
    return filters


def _whole(text: str | None, default: int, low: int, high: int) -> int:
    if text is None:
        return default
    if not text.isdecimal() or not low <= int(text) <= high:
        raise invalid_param(f"{text!r} must be a whole number from {low} to {high}.")
    return int(text)


def _moment(text: str | None) -> float | None:
    """An ISO 8601 time as epoch seconds; one without a zone is UTC."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise invalid_param(f"{text!r} is not an ISO 8601 time.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


async def upload(request: Request) -> Response:
    standin, app = await enter(request, "upload")
    return await standin.uploads.receive(request, app)


async def show_form(request: Request) -> Response:
    standin, app = await enter(request, "form")
    form = _form(standin.book.by_form(app, request.path_params["token"]))
    keys = ("form_content", "inputs", "resolved_default_values", "expiration_time")
    return json_answer({key: form[key] for key in keys} | {"user_actions": form["actions"]})


async def submit_form(request: Request) -> Response:
    """One-shot: the run goes on, a second answer is 412."""
    standin, app, body = await enter_with_body(request, "form")
    user_of(body)
    run = standin.book.by_form(app, request.path_params["token"])
    form = _form(run)
    assert run is not None
    if request.path_params["token"] in run.closed_forms and run.form_answer is None:
        raise DifyError(412, "human_input_form_expired", "This form has expired.")
    if run.form_answer is not None or request.path_params["token"] in run.closed_forms:
        raise DifyError(412, "human_input_form_submitted", "This form has already been submitted.")
    inputs, action = body.get("inputs"), body.get("action")
    names = {entry["output_variable_name"] for entry in form["inputs"]}
    if not isinstance(inputs, dict) or not names <= set(inputs):
        raise DifyError(400, "invalid_form_data", f"Missing inputs: {', '.join(sorted(names))}")
    if action not in {entry["id"] for entry in form["actions"]}:
        raise DifyError(400, "invalid_form_data", f"Invalid action: {action}")
    run.form_answer = {"inputs": inputs, "action": action}
    standin.book.hold(engine.resume(run, standin.pace.run))
    return json_answer({})


def _form(run: Run | None) -> JsonObject:
    if run is None or run.form is None:
        raise not_found("Form not found.")
    return run.form


ROUTES = [
    Route("/", welcome),
    Route("/info", info),
    Route("/parameters", parameters),
    Route("/workflows/run", run_workflow, methods=["POST"]),
    Route("/workflows/logs", logs),
    Route("/workflows/run/{run_id}", run_detail),
    Route("/workflows/{workflow_id}/run", run_workflow, methods=["POST"]),
    Route("/workflows/tasks/{task_id}/stop", stop, methods=["POST"]),
    Route("/workflow/{run_id}/events", events),
    Route("/files/upload", upload, methods=["POST"]),
    Route("/form/human_input/{token}", show_form),
    Route("/form/human_input/{token}", submit_form, methods=["POST"]),
    *chatting.ROUTES,
]
