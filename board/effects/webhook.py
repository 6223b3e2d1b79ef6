"""The action `webhook`: after approval the result is POSTed to a connection, signed, once as far as that can be."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from board.effects import signing, status
from board.effects.addresses import masked
from board.effects.answers import read
from board.effects.authentication import auth_headers
from board.ports import (
    AlreadyConfirmed,
    Answer,
    Cause,
    ConnectionView,
    ErrorClass,
    Failure,
    Http,
    Job,
    Later,
    Lost,
    NotSent,
    NotStarted,
    OperationBusy,
    OperationConflict,
    Outcome,
    Refused,
    SentOperation,
    StreamedAnswer,
    Success,
    UnknownOutcome,
)

ENOUGH = 64 * 1024  # bytes of an answer that are read: it is shown to people, and its status counts
TIMEOUT = 30.0  # seconds for one call: a receiver that works longer should answer 202 and go on by itself


class ActionJob(Job, Protocol):
    """What only the board's own actions see: the envelope with the whole task, and the operation's key."""

    operation_key: str
    webhook_secret: str

    def envelope(self) -> bytes: ...


class WebhookAction:
    name = "webhook"
    phases = ("act",)
    connection_kind = "webhook"
    side_effects = True

    def check(self, handler: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        return ()

    async def run(self, job: ActionJob) -> Outcome:
        connection = job.connection
        assert connection is not None
        try:
            body = await job.send(
                kind="webhook.action", target=masked(connection.url), request=job.envelope(), fixed=True
            )
        except AlreadyConfirmed as done:
            return Success(reference=done.reference)
        except OperationBusy as busy:
            return Later(str(busy), busy.seconds)
        except OperationConflict as conflict:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(conflict), open_operation=conflict.unknown)
        headers = request_headers(connection, job.operation_key, body, job.webhook_secret)
        try:
            answer = await post(job.http, connection.url, headers, body)
        except NotSent as error:
            return Failure(ErrorClass.TRANSIENT, Cause.NETWORK, str(error))
        except Refused as error:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error))
        except Lost as error:
            lost = f"The call to {masked(connection.url)} was sent, but its answer was lost. {error}"
            return self._askable(connection, UnknownOutcome(lost))
        return self._askable(connection, read(answer, connection.url))

    async def reconcile(self, job: ActionJob, operation: SentOperation) -> Outcome | NotStarted:
        connection = job.connection
        assert connection is not None
        if not status.may_ask(connection):  # a plain webhook cannot be asked what became of a call
            return UnknownOutcome(f"A call to {operation.target} was sent, and no answer is known.")
        return await status.ask(job, operation, request_headers(connection, operation.key, b"", job.webhook_secret))

    @staticmethod
    def _askable(connection: ConnectionView, outcome: Outcome) -> Outcome:
        """An unknown outcome stays open where the receiver can be asked about it."""
        if not isinstance(outcome, UnknownOutcome) or not status.may_ask(connection):
            return outcome
        return Failure(
            ErrorClass.UNKNOWN,
            Cause.NETWORK,
            f"{outcome.message} It is asked what became of the call.",
            open_operation=True,
            open_for=status.grace(connection),
        )


def request_headers(connection: ConnectionView, key: str, body: bytes, default_secret: str) -> dict[str, str]:
    """Signature and, where the connection asks for it, what n8n's Webhook and Wait nodes check by themselves."""
    secrets = signing.secrets_of(connection.secrets.get("secret") or default_secret)
    headers = signing.headers(key, body, secrets)
    return headers | auth_headers(connection.secrets.get("auth"), headers["webhook-id"])


async def post(http: Http, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
    """One call. Its status counts once it is seen, even if the answer's body never ends. Raises as `Http` does."""
    seen: StreamedAnswer | None = None
    read = bytearray()
    try:
        async with (
            asyncio.timeout(TIMEOUT),
            http.stream("POST", url, headers=headers, content=body, read_timeout=TIMEOUT) as answer,
        ):
            seen = answer
            async for piece in answer.chunks():
                read += piece
                if len(read) >= ENOUGH:
                    break
    except (TimeoutError, Lost) as error:
        if seen is None:
            raise Lost(str(error) or f"No answer within {TIMEOUT:g} s.") from error
    return Answer(seen.status, seen.headers, bytes(read[:ENOUGH]))
