"""A stand-in for Dify's Service API as one ASGI application, for `board up --demo` and for tests. No AI is in it.

    /v1/…              the Service API: base address for a connection of kind dify; keys are those of apps.APPS
    /hook/…            a webhook receiver; GET /hook/received tells what came
    /_standin/runs     GET: runs that truly began, and every request seen
    /_standin/faults   GET: known faults; POST {"reset": true, "faults": [...], "pace": {...}}

Runs live by themselves: a caller that leaves stops nothing. All state is in memory; `app.state.standin` (StandIn) holds
it, `app.state.runs` and `app.state.requests` are its lists.

Faults. One fault is taken by one run (or by one other call). It is chosen

  a) by the queue: POST /_standin/faults {"faults": ["partial", {"fault": "slow", "seconds": 5, "times": 2}]};
     `match` limits it to calls whose body holds that text, `on` puts it on another call: detail, logs, stop, events,
     upload (those take http faults only);
  b) by the inputs: `standin_fault` = "slow seconds=5", or a marker in any text: [[fault:rate_limit times=1]], where
     `times` limits it to the first runs with these inputs.

Every fault is a named Plan (faults.FAULTS); any field of Plan may be set anew beside the name.

  no_terminal            the stream ends after some text, the run goes on and succeeds
  no_terminal_running    … the run goes on for `seconds` (30)
  no_terminal_unknown    … and the run's detail says "running" for ever (detail: missing, error are possible too)
  drop_before_id         cut before any event; the run begins `queue_seconds` (0.5) later and only the log shows it
  drop_after_id          cut after workflow_started
  drop_not_started       cut, and nothing was started
  html_504               a gateway's HTML page while the run completes
  http                   any answer: http_status, code, message, headers, body (HTML), http_after; start: true for a run
  provider_rate_limit    400 completion_request_error with a 429 inside      rate_limit      429, Retry-After 3
  too_many_requests      400 invalid_param that is a concurrency limit       invalid_param   400
  unauthorized           401
  error_event            `error` 429 in a stream of HTTP 200, then open with pings up to the idle limit
  error_event_no_code    `error` without a code or ids: late refusal of the inputs; no run
  synthetic_failed       started and failed, by a run id that no look-up knows
  partial, empty, failed, stopped       ends of a run      paused          waits for its human-input form
  slow                   works `seconds` (30)              ignore_stop     the stop call says success, nothing stops
  stall                  open and silent after workflow_started            stall_before_answer   not even headers
  raw                    sends the base64 bytes of `raw`, in pieces of `every` or `sizes` bytes; with start: true and
                         run_id a run of that id exists too
  text, fenced, fenced_no_label, think, lone_think, citation, invalid_json, refusal
                         outputs are {"text": …}: the answer's JSON, written in that way
  missing_field          the answer lacks `drop_field` (label)             nul, surrogate        in the answer's summary
  forget_files           uploads are gone before this run
  hide_files             the run silently goes on without its files
"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from integrations.demo import control, hook, service_api
from integrations.demo.standin import FaultAnswer, StandIn, fault_answer
from integrations.demo.streams import Pace
from integrations.demo.wire import DifyError, error_answer, json_answer


def create_app(pace: Pace | None = None) -> Starlette:
    """A new stand-in with a memory of its own. pace: its times; left out, runs take 0.2 s and the rest is Dify's."""
    app = Starlette(
        routes=[
            Route("/v1", service_api.welcome),
            Mount("/v1", routes=service_api.ROUTES),
            Mount("/hook", routes=hook.ROUTES),
            Mount("/_standin", routes=control.ROUTES),
        ],
        exception_handlers={DifyError: error_answer, FaultAnswer: fault_answer, HTTPException: _no_such_call},
    )
    standin = StandIn(pace or Pace())
    app.state.standin = standin
    app.state.runs = standin.book.runs
    app.state.requests = standin.requests
    return app


async def _no_such_call(_: Request, error: Exception) -> Response:
    """Starlette's own 404 and 405 in Dify's shape."""
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "unknown")
    return json_answer({"code": code, "message": error.detail, "status": error.status_code}, error.status_code)
