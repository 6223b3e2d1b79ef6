"""Every error under /api as the contract has it: one plain sentence, a code, details, and the request's id."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from board.access.errors import AccessError
from board.access.rights import Forbidden
from board.catalogue.apply import BadCatalogue
from board.catalogue.store import UnknownType
from board.db.engine import AWAY
from board.db.pages import BadCursor
from board.effects.incoming import Late, NoSuchRight
from board.effects.outside import OtherContent
from board.effects.resend import NotResendable
from board.effects.steps import IllegalStep, NoSuchOperation, NotYours
from board.effects.subscriptions import SubscriptionRefused
from board.files.ledger import NoSuchFile
from board.files.links import BadLink
from board.logs import first_line
from board.notices.routing import NoSuchRoute
from board.notices.rules import NoSuchRule
from board.ports import StorageError
from board.queue.intake_bound import NeverWithinBound, TooMuchWaiting
from board.queue.intake_rate import NeverWithinRate, OverRate
from board.reports.weekly import NoSuchReport
from board.reports.weeks import BadWeek
from board.review.decide import DecisionRefused
from board.review.policy import NotEligible
from board.tasks.intake import Duplicate, Problem
from board.tasks.ledger import Stale
from board.tasks.read import BadFilter
from board.tasks.states import IllegalMove
from board.tasks.visible import Archived, NoSuchTask
from board.upkeep.schedules import ScheduleRefused
from board.worker.claims import ClaimLost, NoSuchClaim

log = logging.getLogger(__name__)

# What a caller should do about a bare status, in words; used where nothing more special is known.
_SENTENCES = {
    401: ("Send an API key as `Authorization: Bearer KEY` or `X-API-Key: KEY`.", "unauthorized"),
    403: ("This key or account may not do that.", "forbidden"),
    404: ("There is nothing at this address.", "not_found"),
    405: ("This address does not take that method.", "method_not_allowed"),
    413: ("The body is too large.", "too_large"),
    415: ("Send JSON, with Content-Type: application/json.", "unsupported_media_type"),
    422: ("The request does not fit.", "invalid"),
    429: ("Too many requests; try again later.", "too_many_requests"),
    500: ("Something went wrong here. The log has the details under this request id.", "internal_error"),
    503: ("The board cannot answer right now; try again in a moment.", "unavailable"),
}
_DECISION_STATUS = {
    "not_found": 404,
    "verdict_not_offered": 422,
    "instruction_missing": 422,
    "answer_does_not_fit": 422,
    "not_editable": 422,
    "edit_does_not_fit": 422,
    "bad_time": 422,
    "unknown_assignee": 422,
}


class ApiError(HTTPException):
    """An answer that is an error. details: objects such as {"field": …, "message": …}."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        details: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.code, self.message, self.details = code, message, [dict(item) for item in details]


def _operation(row: Any) -> dict[str, Any]:
    """How an operation stands, as the details of a refusal."""
    shown = ("status", "task_id", "owner", "execution_id", "external_reference")
    return {"id": str(row["id"]), **{name: row[name] for name in shown}}


def error_answer(request: Request, error: ApiError) -> JSONResponse:
    request_id = getattr(request.state, "request_id", "")
    body = {"message": error.message, "code": error.code, "details": error.details, "request_id": request_id}
    headers = dict(error.headers or {})
    if error.status_code in (429, 503):
        headers.setdefault("Retry-After", "5")
    return JSONResponse(body, error.status_code, headers)


def translate(error: Exception) -> ApiError:
    """Any refusal of the rooms as an answer."""
    match error:
        case ApiError():
            return error
        case RequestValidationError():
            return _invalid(error.errors())
        case HTTPException():
            sentence, code = _SENTENCES.get(error.status_code, (str(error.detail), "error"))
            return ApiError(error.status_code, code, sentence, headers=error.headers)
        case Forbidden():
            return ApiError(403, "forbidden", str(error))
        case NotEligible():
            return ApiError(403, "not_eligible", str(error), [{"why": error.why, "reviewers": list(error.reviewers)}])
        case Archived():
            return ApiError(410, "archived", str(error), [{"status": error.status, "day": str(error.day)}])
        case NoSuchTask():
            return ApiError(404, "task_not_found", str(error))
        case NoSuchRight():
            return ApiError(404, "callback_not_found", str(error))
        case Late():
            return ApiError(409, error.code, str(error), [{"status": error.status}])
        case NotResendable():
            return ApiError(409, "not_resendable", str(error))
        case NoSuchClaim():
            return ApiError(404, "claim_not_found", str(error))
        case NoSuchFile():
            return ApiError(404, "file_not_found", str(error))
        case BadLink():
            return ApiError(410, "link_expired", str(error))
        case StorageError():
            log.error("the storage of files cannot be used: %s", error)
            return ApiError(503, "storage_unavailable", str(error))
        case NoSuchOperation():
            return ApiError(404, "operation_not_found", str(error))
        case NotYours():
            return ApiError(403, "not_yours", str(error))
        case OtherContent():
            return ApiError(409, "operation_conflict", str(error), [_operation(error.operation)])
        case IllegalStep():
            return ApiError(409, "illegal_state", str(error), [_operation(error.operation)])
        case ClaimLost():
            return ApiError(409, "claim_lost", str(error), [{"reason": error.reason}])
        case Problem():
            return field_error(error.field, str(error), error.code)
        case Duplicate():
            return ApiError(409, "duplicate", str(error), [{"task_id": error.task_id}])
        case UnknownType():
            return field_error("type", str(error), "unknown_type")
        case BadFilter():
            return field_error(error.field, str(error), "invalid_field")
        case BadCursor():
            return field_error("cursor", str(error), "bad_cursor")
        case BadCatalogue():
            details = [{"field": path, "message": message} for path, message in error.problems]
            path, message = error.problems[0]
            return ApiError(422, "invalid_field", f"{path}: {message}", details)
        case AccessError():
            status = 404 if error.code == "not_found" else 422 if error.field else 409
            return ApiError(status, error.code, str(error), [{"field": error.field}] if error.field else [])
        case IllegalMove():
            return ApiError(409, "illegal_state", str(error), [{"status": error.status, "phase": error.phase}])
        case OverRate() | TooMuchWaiting():
            later = str(error.retry_after)
            said = [{"retry_after": error.retry_after}]  # in the body too: n8n does not show headers
            code = "rate_limited" if isinstance(error, OverRate) else "too_many_waiting"
            return ApiError(429, code, str(error), said, {"Retry-After": later})
        case NeverWithinRate():
            return field_error("tasks", str(error), "too_many_for_rate")
        case NeverWithinBound():
            return field_error("tasks", str(error), "too_many_at_once")
        case Stale():
            return ApiError(
                409, "stale_version", "This task has changed meanwhile. Read it again, then repeat the change."
            )
        case BadWeek():
            return field_error("week", str(error), "bad_week")
        case NoSuchReport():
            return ApiError(404, "report_not_found", str(error))
        case ScheduleRefused() | SubscriptionRefused() | NoSuchRoute() | NoSuchRule():
            return ApiError(404 if error.code == "not_found" else 409, error.code, str(error))
        case DecisionRefused():
            return ApiError(_DECISION_STATUS.get(error.code, 409), error.code, str(error), error.details)
        case _ if isinstance(error, AWAY):
            log.error("the database does not answer: %s", first_line(error))
            sentence, code = _SENTENCES[503]
            return ApiError(503, code, sentence)
        case _:
            sentence, code = _SENTENCES[500]
            return ApiError(500, code, sentence)


EXPECTED: tuple[type[Exception], ...] = (
    HTTPException,
    RequestValidationError,
    Forbidden,
    NotEligible,
    Problem,
    Duplicate,
    UnknownType,
    BadFilter,
    BadCursor,
    BadCatalogue,
    BadWeek,
    NoSuchReport,
    AccessError,
    NoSuchRoute,
    NoSuchRule,
    NoSuchOperation,
    NoSuchFile,
    BadLink,
    StorageError,
    NotYours,
    OtherContent,
    IllegalStep,
    NotResendable,
    NoSuchRight,
    Late,
    IllegalMove,
    OverRate,
    NeverWithinRate,
    TooMuchWaiting,
    NeverWithinBound,
    Stale,
    DecisionRefused,
    NoSuchTask,
    NoSuchClaim,
    ClaimLost,
    ScheduleRefused,
    SubscriptionRefused,
    *AWAY,
)


def field_error(field: str, message: str, code: str) -> ApiError:
    """422 whose sentence names the field."""
    text = message if field in message else f"{field}: {message}"
    return ApiError(422, code, text, [{"field": field, "message": message}])


def methods_here(request: Request) -> list[str]:
    """What may be done at the address of this request. The framework alone names the methods of one route only."""
    found = [
        method
        for method in ("GET", "POST", "PATCH", "PUT", "DELETE")
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL for route in request.app.router.routes
        )
    ]
    return [*found, *(["HEAD"] if "GET" in found else []), "OPTIONS"]


def install(api: FastAPI) -> None:
    """Every exception of this application leaves as the contract's error body."""

    async def answer(request: Request, error: Exception) -> Response:
        known = translate(error)
        if known.status_code == 405:
            allow = {"Allow": ", ".join(methods_here(request))}
            if request.method == "OPTIONS":
                return Response(status_code=204, headers=allow)
            known.headers = allow
        return error_answer(request, known)

    async def unforeseen(request: Request, error: Exception) -> JSONResponse:
        request_id = getattr(request.state, "request_id", "")
        log.error("request %s failed", request_id, exc_info=error)
        response = error_answer(request, translate(error))
        response.headers["X-Request-Id"] = request_id  # this answer passes none of the middleware
        return response

    for kind in EXPECTED:
        api.add_exception_handler(kind, answer)
    api.add_exception_handler(Exception, unforeseen)


# The validation library's own words for these name classes and methods of Python.
_PLAIN = {
    "model_type": "must be a JSON object",
    "model_attributes_type": "must be a JSON object",
    "dict_type": "must be a JSON object",
    "timezone_aware": "write a time with its zone, such as 2026-11-30T09:00:00+08:00",
}


def _invalid(problems: Sequence[Any]) -> ApiError:
    details = []
    code = "invalid_field"
    for problem in problems:
        place = [str(part) for part in problem["loc"] if part not in ("body", "query", "path", "header")]
        field = ".".join(place)[:200] or "body"
        message = str(problem["msg"]).removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            message, code = "is not a field of this request; leave it out", "unknown_field"
        elif problem["type"] == "missing":
            message = "is missing" if place else "is empty; send a JSON object"
        elif problem["type"] in _PLAIN:
            message = _PLAIN[problem["type"]]
        details.append({"field": field, "message": message})
    first = details[0]
    return ApiError(422, code, f"{first['field']}: {first['message']}.", details)
