"""What the answer to a webhook means: the one table for callbacks and actions. See docs/webhooks.md."""

from __future__ import annotations

import email.utils
import re
import time
from urllib.parse import urljoin, urlsplit

from board.effects.addresses import masked
from board.ports import Answer, Cause, ErrorClass, Failure, Outcome, Success, UnknownOutcome

# n8n says 200 with this text while it starts, and has taken nothing.
_STARTING = "n8n is starting up"
TOO_EARLY = "too_early"  # the code of a failure: n8n has not yet come to the Wait node


def read(answer: Answer, url: str) -> Outcome:
    """2xx confirms; 429 and 503 come again; other 3xx and 4xx reject; other 5xx is unknown.

    n8n has its own ways: it answers 200 or an HTML 404 while it starts, and 409 while an execution has not come to its
    Wait node; all of these come again.
    """
    target = masked(url)
    said = f"{target} answered {answer.status}"
    if 200 <= answer.status < 300 and not answer.text[:100].startswith(_STARTING):
        return Success(reference=answer.headers.get("x-request-id"))
    if answer.status < 300 or _still_starting(answer):
        message = f"{target} is just starting and has not taken the call."
        return Failure(ErrorClass.TRANSIENT, Cause.UPSTREAM_5XX, message, http_status=answer.status)
    if answer.status in (429, 503):
        klass = ErrorClass.QUOTA if answer.status == 429 else ErrorClass.TRANSIENT
        cause = Cause.RATE_LIMIT if answer.status == 429 else Cause.UPSTREAM_5XX
        return Failure(klass, cause, f"{said}.", http_status=answer.status, retry_after=retry_after(answer))
    if answer.status == 409 and _resumes(url) and "running already" in answer.text:
        message = f"{said}: n8n's execution has not come to its Wait node yet."
        return Failure(ErrorClass.TRANSIENT, Cause.PRECONDITION, message, code=TOO_EARLY, http_status=409)
    if answer.status >= 500:
        return UnknownOutcome(f"{said}, so it may or may not have taken the call.")
    return _rejected(answer, said)


def word(outcome: Outcome) -> str:
    """What a try came to, for the log: confirmed, rejected, transient (it comes again) or unknown."""
    if isinstance(outcome, Success):
        return "confirmed"
    if isinstance(outcome, Failure):
        return "rejected" if outcome.error_class is ErrorClass.PERMANENT else "transient"
    return "unknown"


def _rejected(answer: Answer, said: str) -> Failure:
    cause = Cause.AUTH if answer.status in (401, 403) else Cause.UPSTREAM_4XX
    message = f"{said} and refused the call."
    if answer.status < 400:
        message = f"{said}: moved to {_moved_to(answer)}. Redirects are not followed; correct the address."
    elif answer.status == 410:
        message = f"{said}: the address is gone and wants no more calls."
    return Failure(ErrorClass.PERMANENT, cause, message, http_status=answer.status)


def _still_starting(answer: Answer) -> bool:
    """The page of a Node.js server whose routes are not there yet; a wrong path of n8n is answered in JSON."""
    html = answer.headers.get("content-type", "").startswith("text/html")
    return answer.status == 404 and html and "Cannot POST /" in answer.text[:2000]


def _resumes(url: str) -> bool:
    """Whether an address continues an n8n execution that waits."""
    return "/webhook-waiting/" in urlsplit(url).path


def retry_after(answer: Answer) -> float | None:
    """Seconds from a Retry-After header: a number, or a date."""
    text = answer.headers.get("retry-after", "").strip()
    if re.fullmatch("[0-9]{1,9}", text):
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _moved_to(answer: Answer) -> str:
    """Where a redirect leads, for people; its query may hold a secret."""
    try:
        return masked(urljoin("http:", answer.headers["location"]))
    except (KeyError, ValueError):
        return "an unnamed address"
