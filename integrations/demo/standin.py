"""The memory of one stand-in, and what every call to it goes through first: being noted, a queued fault, the key."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from integrations.demo.apps import APPS, DemoApp
from integrations.demo.faults import Faults, Plan
from integrations.demo.runs import KEPT, RunBook
from integrations.demo.streams import Pace
from integrations.demo.uploads import Uploads
from integrations.demo.wire import DifyError, JsonObject, json_answer, json_body


@dataclass(slots=True)
class StandIn:
    """Everything one stand-in knows; gone when its process ends."""

    pace: Pace
    book: RunBook = field(default_factory=RunBook)
    faults: Faults = field(default_factory=Faults)
    uploads: Uploads = field(default_factory=Uploads)
    requests: list[JsonObject] = field(default_factory=list)  # {at, method, path, query, body}; never the key
    hooks: list[JsonObject] = field(default_factory=list)

    def note(self, request: Request, body: object = None) -> None:
        seen = {"at": time.time(), "method": request.method, "path": request.url.path}
        self.requests.append(seen | {"query": dict(request.query_params), "body": body})
        del self.requests[:-KEPT]

    def reset(self) -> None:
        self.book.clear()
        self.faults.clear()
        self.uploads.by_id.clear()
        self.requests.clear()
        self.hooks.clear()


def of(request: Request) -> StandIn:
    standin: StandIn = request.app.state.standin
    return standin


class FaultAnswer(Exception):
    """A queued fault answers in place of the call."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


async def fault_answer(_: Request, error: Exception) -> Response:
    """Starlette's hook for FaultAnswer."""
    assert isinstance(error, FaultAnswer)
    return error.response


async def enter(request: Request, call: str | None = None, body: object = None) -> tuple[StandIn, DemoApp]:
    """Note the call, let a queued fault answer it, check the key. Raises DifyError 401, FaultAnswer."""
    standin = of(request)
    standin.note(request, body)
    app = app_of(request)
    if call is not None:
        plan = standin.faults.take(call, f"{request.url.path} {dict(request.query_params)} {body}")
        if plan is not None and plan.http_status is not None:
            raise FaultAnswer(await http_answer(plan))
    return standin, app


async def enter_with_body(request: Request, call: str | None = None) -> tuple[StandIn, DemoApp, JsonObject]:
    """As `enter`, for calls with a JSON body, which is judged after the key. Raises DifyError 400 and 415 too."""
    body: JsonObject | None = None
    refusal: DifyError | None = None
    try:
        body = await json_body(request)
    except DifyError as error:
        refusal = error
    standin, app = await enter(request, call, body)
    if refusal is not None or body is None:
        raise refusal or DifyError(400, "bad_request", "The body is missing.")
    return standin, app, body


def app_of(request: Request) -> DemoApp:
    """The app that the key opens. The scheme's case does not count."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise DifyError(401, "unauthorized", "Authorization header must be provided and start with 'Bearer'")
    app = APPS.get(key.strip())
    if app is None:
        raise DifyError(401, "unauthorized", "Access token is invalid")
    return app


async def http_answer(plan: Plan) -> Response:
    """The HTTP answer a plan gives in place of the true one; a set body goes out as HTML unless headers say else."""
    assert plan.http_status is not None
    await asyncio.sleep(plan.http_after)
    if plan.body is not None:
        return Response(plan.body, plan.http_status, {"Content-Type": "text/html"} | plan.headers)
    body = {"code": plan.code or "unknown", "message": plan.message, "status": plan.http_status}
    return json_answer(body, plan.http_status, plan.headers)
