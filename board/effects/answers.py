"""What the answer to a webhook means: the one table for callbacks and actions. See docs/webhooks.md."""

from __future__ import annotations

import email.utils
import re
import time
from urllib.parse import urljoin, urlsplit

from board.effects import n8n_answers
from board.effects.addresses import masked
from board.ports import Answer, Cause, ErrorClass, Failure, Outcome, Success, UnknownOutcome


def read(answer: Answer, url: str, *, resumes: bool = False) -> Outcome:
    """2xx confirms; 429 and 503 come again; other 3xx and 4xx reject; other 5xx is unknown.

    n8n has its own ways, which come first: while it starts, and at the address of a flow that waits. resumes: the
    address is such a one, whatever it looks like.
    """
    target = masked(url)
    said = f"{target} answered {answer.status}"
    if (starting := n8n_answers.while_starting(answer, target)) is not None:
        return starting
    if 200 <= answer.status < 300:
        return Success(reference=answer.headers.get("x-request-id"))
    if answer.status in (429, 503):
        klass = ErrorClass.QUOTA if answer.status == 429 else ErrorClass.TRANSIENT
        cause = Cause.RATE_LIMIT if answer.status == 429 else Cause.UPSTREAM_5XX
        return Failure(klass, cause, f"{said}.", http_status=answer.status, retry_after=retry_after(answer))
    if (resumes or _waits(url)) and (own := n8n_answers.of_waiting(answer, said)) is not None:
        return own
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


def _waits(url: str) -> bool:
    """Whether an address looks as n8n writes those that continue an execution."""
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
