"""One call to a chat: what its HTTP says, before its own code is read. Most chats report failures with HTTP 200."""

from __future__ import annotations

import json
import re
from typing import Any

from board.ports import (
    Answer,
    Cause,
    ConnectionView,
    ErrorClass,
    Failure,
    Http,
    Lost,
    NotSent,
    Refused,
    UnknownOutcome,
)

SECONDS = 20.0  # a chat answers within one; more is an outage
WAIT_SECONDS = 60.0  # after "too many": every chat counts by the minute, and a fast second try only prolongs it
DAY = 86_400.0  # no answer makes us wait longer


async def post(
    connection: ConnectionView, url: str, document: Any, http: Http, *, any_status: bool = False
) -> Answer | Failure | UnknownOutcome:
    """The answer where its HTTP status is 2xx, or any_status is good; else what that means.

    The text of a failure bears no part of the url, which is a secret.
    """
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {"content-type": "application/json; charset=utf-8", "user-agent": "ai-task-board"}
    try:
        answer = await http.request("POST", url, headers=headers, content=body, timeout=SECONDS)
    except NotSent as error:
        return Failure(ErrorClass.TRANSIENT, Cause.NETWORK, str(error))
    except Lost as error:
        return UnknownOutcome(f"The message may have arrived: {error}")
    except Refused as error:
        return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error))
    return answer if any_status or 200 <= answer.status < 300 else of_status(connection, answer)


def of_status(connection: ConnectionView, answer: Answer, said: str = "") -> Failure:
    """A failure by its HTTP status. said: the chat's own words, where they are not the body."""
    status = answer.status
    words = f"{connection.kind} answered {status}: {short(said or answer.text) or 'nothing more'}"
    if status == 429:
        return too_many(words, wanted_wait(answer), status=status)
    if status >= 500 or status == 408:
        return Failure(ErrorClass.TRANSIENT, Cause.UPSTREAM_5XX, words, http_status=status)
    if status in (401, 403, 404, 410):
        words += f". Check `url` of the connection “{connection.name}”: it is not valid, or no longer."
        return Failure(ErrorClass.PERMANENT, Cause.AUTH, words, http_status=status)
    return Failure(ErrorClass.PERMANENT, Cause.UPSTREAM_4XX, words, http_status=status)


def refused(message: str, code: Any = None, cause: Cause = Cause.UPSTREAM_4XX) -> Failure:
    """It does not help to send it again."""
    return Failure(ErrorClass.PERMANENT, cause, message, code=None if code is None else str(code))


def too_many(message: str, wait: float | None = None, code: Any = None, status: int | None = None) -> Failure:
    seconds = min(WAIT_SECONDS if wait is None else wait, DAY)
    shown = None if code is None else str(code)
    return Failure(ErrorClass.QUOTA, Cause.RATE_LIMIT, message, shown, status, retry_after=seconds)


def wanted_wait(answer: Answer) -> float | None:
    """The seconds of Retry-After, where it is a number."""
    text = answer.headers.get("retry-after", "").strip()
    return float(text) if re.fullmatch(r"\d{1,6}(\.\d+)?", text) else None


def document(answer: Answer) -> dict[str, Any]:
    """The body as an object; empty where it is none."""
    try:
        found = json.loads(answer.body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def number(found: dict[str, Any], name: str) -> int | None:
    """A code of the body; some proxies turn numbers into texts."""
    value = found.get(name)
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,12}", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def not_understood(connection: ConnectionView, answer: Answer) -> Failure:
    """HTTP says yes and the body does not: a proxy, a sign-in page, or an address of something else."""
    words = f"{connection.kind} answered {answer.status}, but with a body that is not its own: {short(answer.text)}"
    return refused(f"{words}. Check `url` of the connection “{connection.name}”.")


def short(text: str) -> str:
    return " ".join(text.split())[:200]
