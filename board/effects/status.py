"""Asks a receiver of webhooks what became of a call, where its connection names an address for that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from board import templating
from board.catalogue.status_spec import StatusAnswer
from board.effects import signing
from board.effects.addresses import masked
from board.ports import (
    Answer,
    Cause,
    ConnectionView,
    ErrorClass,
    Failure,
    HttpError,
    Job,
    NotStarted,
    Outcome,
    Refused,
    SentOperation,
    Success,
)

TIMEOUT = 15.0  # seconds for one question
GRACE = 60.0  # seconds after sending in which "I know no such call" proves nothing: it may still be on its way


def may_ask(connection: ConnectionView) -> bool:
    """Whether the receiver can be asked. Where it drops repeats by itself, sending again is simpler and as safe."""
    return bool(connection.options.get("status_url")) and not connection.options.get("idempotent")


def grace(connection: ConnectionView) -> float:
    """Seconds after sending during which a call may be missing at the receiver and still arrive."""
    return float(connection.options.get("grace", GRACE))


def url(connection: ConnectionView, operation: SentOperation) -> str:
    """The address that tells about this call. Raises TemplateProblem."""
    values = {
        "key": signing.webhook_id(operation.key),
        "operation_key": operation.key,
        "reference": operation.reference or "",
    }
    quoted = {name: quote(value, safe="") for name, value in values.items()}
    return templating.fill_strict(connection.options["status_url"], quoted)


async def ask(job: Job, operation: SentOperation, headers: Mapping[str, str]) -> Outcome | NotStarted:
    """What the receiver says. A Failure with an open operation means that it cannot be told yet.

    headers: what the receiver checks, as in every call to it.
    """
    connection = job.connection
    assert connection is not None
    try:
        address = url(connection, operation)
        answer = await job.http.request("GET", address, headers=headers, timeout=TIMEOUT)
    except (templating.TemplateProblem, Refused) as error:
        message = f"The status_url of the connection “{connection.name}” cannot be asked: {error}"
        return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, message, open_operation=True)
    except HttpError as error:
        return _open(Cause.NETWORK, f"{masked(connection.url)} could not be asked what became of the call: {error}")
    return read(connection, operation, answer, masked(address))


def read(connection: ConnectionView, operation: SentOperation, answer: Answer, where: str) -> Outcome | NotStarted:
    """What an answer means: docs/webhooks.md has the table."""
    if answer.status in (404, 410):
        return _missing(connection, operation, f"{where} answered {answer.status}: it knows no such call.")
    if not 200 <= answer.status < 300:
        cause = Cause.AUTH if answer.status in (401, 403) else Cause.UPSTREAM_4XX
        cause = cause if answer.status < 500 else Cause.UPSTREAM_5XX
        return _open(cause, f"{where} answered {answer.status} when it was asked what became of the call.", answer)
    form = StatusAnswer.model_validate(connection.options.get("status_answer") or {})
    try:
        body = json.loads(answer.body)
    except (ValueError, RecursionError):
        return _open(Cause.BAD_OUTPUT, f"{where} did not answer in JSON when it was asked what became of the call.")
    word = _at(body, form.field)
    said = f"{where} says “{str(word)[:100]}”"
    match form.meaning(word):
        case "confirmed":
            reference = _at(body, form.reference)
            return Success(reference=None if reference is None else str(reference)[:1000])
        case "rejected":
            message = f"{said}: the call was carried out and failed there."
            return Failure(ErrorClass.PERMANENT, Cause.UPSTREAM_4XX, message)
        case "missing":
            return _missing(connection, operation, f"{said}: it knows no such call.")
        case "pending":
            return _open(Cause.TIMEOUT, f"{said}: it is still at it.")
    return _open(Cause.BAD_OUTPUT, f"{said} at “{form.field}”, which the connection's status_answer does not name.")


def _missing(connection: ConnectionView, operation: SentOperation, message: str) -> Failure | NotStarted:
    sent_at = operation.sent_at if operation.sent_at.tzinfo else operation.sent_at.replace(tzinfo=UTC)
    left = grace(connection) - (datetime.now(UTC) - sent_at).total_seconds()
    if left <= 0:
        return NotStarted(message)
    return Failure(
        ErrorClass.TRANSIENT,
        Cause.NETWORK,
        f"{message} It may still be on its way.",
        retry_after=left,
        open_operation=True,
        open_for=grace(connection),
    )


def _open(cause: Cause, message: str, answer: Answer | None = None) -> Failure:
    status = answer.status if answer else None
    return Failure(ErrorClass.TRANSIENT, cause, message, http_status=status, open_operation=True)


def _at(body: Any, path: str) -> Any:
    """The value at a dotted path; None where there is none."""
    for name in path.split("."):
        body = body.get(name) if isinstance(body, dict) else None
    return body
