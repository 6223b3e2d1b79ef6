"""One signed call to a receiver of webhooks: announced, signed, made, its answer read and kept for the log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Protocol

from board.effects import signing
from board.effects.addresses import masked, receiver, same_server
from board.effects.answers import read, word
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
    OperationBusy,
    OperationConflict,
    Outcome,
    Refused,
    StreamedAnswer,
    Success,
    UnknownOutcome,
)

TIMEOUT = 30.0  # seconds for one call: a receiver that works longer should answer 202 and go on by itself
ENOUGH = 64 * 1024  # bytes of an answer that are read where it is only shown to people


class CallingJob(Job, Protocol):
    """What a signed call needs of an attempt beside what its handler sees."""

    operation: int | None  # its id, once it is announced
    operation_key: str
    webhook_secret: str

    def tried(self, milliseconds: int, http_status: int | None, outcome: str, detail: str) -> None: ...


async def call(
    job: CallingJob,
    url: str,
    *,
    kind: str,
    body: bytes,
    fixed: bool,
    seconds: float | None = None,
    most: int = ENOUGH,
    resumes: bool = False,
) -> Answer | Outcome:
    """Announce a call and make it. The answer where it is a 2xx, else what follows from it; see docs/webhooks.md.

    Success: another task has done this very action before. seconds: for the whole call. most: bytes of the answer.
    resumes: the address continues a flow of n8n that waits.
    """
    try:
        body = await job.send(kind=kind, target=masked(url), request=body, fixed=fixed)
    except AlreadyConfirmed as done:
        return Success(reference=done.reference)
    except OperationBusy as busy:
        return Later(str(busy), busy.seconds)
    except OperationConflict as conflict:
        return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(conflict), open_operation=conflict.unknown)
    headers = request_headers(job.connection, job.operation_key, body, job.webhook_secret)
    begun = time.monotonic()
    answer: Answer | None = None
    outcome: Outcome
    try:
        answer = await post(job.http, url, headers, body, seconds, most)
        outcome = read(answer, url, resumes=resumes)
    except NotSent as error:
        outcome = Failure(ErrorClass.TRANSIENT, Cause.NETWORK, str(error))
    except Refused as error:
        outcome = Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error))
    except Lost as error:
        outcome = UnknownOutcome(f"The call to {masked(url)} was sent, but its answer was lost. {error}")
    detail = answer.text if answer else outcome.message if not isinstance(outcome, Success) else ""
    job.tried(_since(begun), answer.status if answer else None, word(outcome), detail)
    return answer if answer is not None and isinstance(outcome, Success) else outcome


def request_headers(connection: ConnectionView | None, key: str, body: bytes, default_secret: str) -> dict[str, str]:
    """Signature and, where the connection asks for it, what n8n's Webhook and Wait nodes check by themselves."""
    own = connection.secrets if connection else {}
    headers = signing.headers(key, body, signing.secrets_of(own.get("secret") or default_secret))
    return headers | auth_headers(own.get("auth"), headers["webhook-id"])


def elsewhere(connection: ConnectionView | None, url: str) -> str | None:
    """Why a connection's header, password or token does not go to an address that a caller has named."""
    if connection is None or same_server(connection.url, url):
        return None
    return (
        f"{receiver(url)} is not where the connection “{connection.name}” leads ({receiver(connection.url)}); what it "
        "signs in with goes nowhere else. Nothing was sent."
    )


async def post(
    http: Http, url: str, headers: Mapping[str, str], body: bytes, seconds: float | None = None, most: int = ENOUGH
) -> Answer:
    """One call. Its status counts once it is seen, even if the answer's body never ends. Raises as `Http` does."""
    seconds = TIMEOUT if seconds is None else seconds
    seen: StreamedAnswer | None = None
    read = bytearray()
    try:
        async with (
            asyncio.timeout(seconds),
            http.stream("POST", url, headers=headers, content=body, read_timeout=seconds) as answer,
        ):
            seen = answer
            async for piece in answer.chunks():
                read += piece
                if len(read) >= most:
                    break
    except (TimeoutError, Lost) as error:
        if seen is None:
            raise Lost(str(error) or f"No answer within {seconds:g} s.") from error
    return Answer(seen.status, seen.headers, bytes(read[:most]))


def _since(moment: float) -> int:
    return int((time.monotonic() - moment) * 1000)
