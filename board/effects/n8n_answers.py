"""What n8n answers at the address of a flow that waits, and while it starts. Seen with n8n 2.40 and 1.123."""

from __future__ import annotations

from board.ports import Answer, Cause, ErrorClass, Failure, Outcome

# Codes of failures.
TOO_EARLY = "too_early"  # the execution has not come to its Wait node
ENDED = "execution_ended"  # nothing waits any more: it was continued before, or has ended without us

_STARTING = "n8n is starting up"  # said with 200 while n8n starts; the call is not taken


def while_starting(answer: Answer, target: str) -> Failure | None:
    """n8n says 200 or an HTML 404 while it starts, and has taken nothing: the call comes again.

    A wrong path of n8n is answered in JSON; the HTML page is that of a Node.js server whose routes are not there yet.
    """
    html = answer.headers.get("content-type", "").startswith("text/html")
    no_route = answer.status == 404 and html and "Cannot POST /" in answer.text[:2000]
    if not no_route and not (200 <= answer.status < 300 and answer.text[:100].startswith(_STARTING)):
        return None
    message = f"{target} is just starting and has not taken the call."
    return Failure(ErrorClass.TRANSIENT, Cause.UPSTREAM_5XX, message, http_status=answer.status)


def of_waiting(answer: Answer, said: str) -> Outcome | None:
    """What n8n's own refusals mean; None for every other answer. said: who answered what, for people."""
    text = answer.text[:2000]
    match answer.status:
        case 409 if "running already" in text:
            message = f"{said}: n8n's execution has not come to its Wait node yet."
            return Failure(ErrorClass.TRANSIENT, Cause.PRECONDITION, message, code=TOO_EARLY, http_status=409)
        case 409 if "has finished with error" in text:
            return _ended(409, f"{said}: n8n's execution was cancelled or has failed, so nothing waits there any more.")
        case 409 if "has finished" in text:
            return _ended(409, f"{said}: n8n's execution has ended already, so nothing waits there any more.")
        case 404 if "does not exist" in text:
            return _wrong(404, f"{said}: n8n knows no such execution any more; it was deleted or pruned.")
        case 404 if "waiting webhook" in text:
            return _wrong(404, f"{said}: no Wait node waits there for a POST. Check its method and its webhook suffix.")
        case 401:
            advice = "Hand on {{ $execution.resumeUrl }} as it is, with its signature."
            return _wrong(401, f"{said}: n8n does not accept the address. {advice}", Cause.AUTH)
        case 403:
            advice = "Switch its authentication off; the address itself is the secret."
            return _wrong(403, f"{said}: the Wait node asks for a header or password. {advice}", Cause.AUTH)
    return None


def _ended(status: int, message: str) -> Failure:
    return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, message, code=ENDED, http_status=status)


def _wrong(status: int, message: str, cause: Cause = Cause.UPSTREAM_4XX) -> Failure:
    return Failure(ErrorClass.PERMANENT, cause, message, http_status=status)
