"""What follows from an outcome: one pure function from (type, task, outcome) to the move that ends the attempt."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import RowMapping

from board.catalogue.shape import first_problem
from board.catalogue.spec import TypeSpec
from board.ports import Cause, ErrorClass, Failure, Later, NeedsInput, Outcome, Success, UnknownOutcome
from board.review import policy
from board.review.policy import Reason, Wish
from board.tasks.states import Move, Phase
from board.tasks.text import clean
from board.worker import asking, judgement, retry
from board.worker.asking import OpenCall

MAX_ERROR = 1000  # characters of `last_error`: a sentence, not a page


@dataclass(slots=True)  # not frozen: made for every attempt, and that takes a third of the time
class Decision:
    """The move, what it writes to `tasks` and `task_data`, and how the open operation is closed ("" leaves it)."""

    move: Move
    changes: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    note: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    operation: str = ""
    wait: float = 0.0  # seconds until the task is ready again
    attempt: dict[str, Any] = field(default_factory=dict)  # columns of `attempts`


def decide(
    spec: TypeSpec,
    task: RowMapping,
    outcome: Outcome,
    *,
    may_resend: bool,
    review: Wish = "auto",
    call: OpenCall | None = None,
) -> Decision:
    """may_resend: after an unknown outcome the call may be sent again (no side effects, or an idempotent target).

    review: what an outside worker wishes for with its success. call: the call that a failure with an open operation is
    about.
    """
    match outcome:
        case Success():
            return _success(spec, task, outcome, review)
        case Failure():
            return _failure(spec, task, retry.classed(outcome, spec.retry), call)
        case Later():
            return _later(outcome)
        case UnknownOutcome():
            return _unknown(spec, task, outcome, may_resend)
        case NeedsInput():
            return _needs_input(outcome)


def _success(spec: TypeSpec, task: RowMapping, success: Success, review: Wish) -> Decision:
    attempt = {
        "outcome": "succeeded",
        "raw_text": clean(success.raw_text),
        "tokens": success.tokens,
        "cost": success.cost and clean(success.cost)[:40],
        "reference": clean(success.reference),
    }
    if task["phase"] == Phase.ACT:
        return Decision(Move.SUCCEED, _CLEARED, operation="confirmed", attempt=attempt)
    if (result := clean(success.result)) is not success.result:
        success = replace(success, result=result)
    success = _validated(spec, success)
    judged = clean(success.judgement)
    opinion = judgement.normal(judged) if judged else judgement.read(success.result, spec.handler.judgement)
    data = {"result": success.result, "judgement": opinion}
    attempt |= {"output": success.result}
    ask = policy.asks(spec, success, opinion or {}, review)
    if ask is not None:
        attempt["outcome"] = "needs_review"
        return Decision(
            Move.ASK, _CLEARED, data, ask.message, {"reason": ask.reason}, operation="confirmed", attempt=attempt
        )
    details = {"passed": "rules"} if spec.review.when == "rules" else {}  # nobody has looked: reports count that
    if spec.action is not None:
        changes = _CLEARED | {"has_action": True}
        return Decision(Move.PROCEED, changes, data, details=details, operation="confirmed", attempt=attempt)
    return Decision(Move.SUCCEED, _CLEARED, data, details=details, operation="confirmed", attempt=attempt)


def _validated(spec: TypeSpec, success: Success) -> Success:
    if spec.handler.output_schema is None or success.ask is not None:
        return success
    found = first_problem(spec.handler.output_schema, success.result)
    if found is None:
        return success
    return replace(success, ask="invalid_output", ask_message=f"The output does not fit: {found[1]}")


def _failure(spec: TypeSpec, task: RowMapping, failure: Failure, call: OpenCall | None) -> Decision:
    message = clean(failure.message)[:MAX_ERROR]
    changes: dict[str, Any] = {
        "last_error": message,
        "error_class": failure.error_class,
        "error_cause": failure.cause,
    }
    details = {"code": failure.code, "http_status": failure.http_status, "cause": failure.cause}
    details = {key: value for key, value in details.items() if value is not None}
    attempt = {
        "outcome": "failed",
        "error_class": failure.error_class,
        "error_cause": failure.cause,
        "error": message,
        "rule": failure.rule,
        "raw_text": clean(failure.raw_text),
        "tokens": failure.tokens,
        "cost": failure.cost and clean(failure.cost)[:40],
    }
    if failure.open_operation and call is not None and failure.error_class in retry.RETRIED:
        wait = asking.pause(failure, call, spec.retry)
        if wait is None:  # the call may still be going on, and it was asked about long enough: unknown, not failed
            return _ask_unknown(changes, message, attempt)
        attempt |= {"outcome": "open"}
        return Decision(Move.RECONCILE, changes, note=message, details=details, wait=wait, attempt=attempt)
    operation = "" if failure.open_operation else "rejected"
    if failure.error_class in retry.RETRIED and task["retry_count"] < task["max_retries"]:
        return Decision(
            Move.RETRY,
            changes | {"retry_count": task["retry_count"] + 1},
            note=message,
            details=details,
            operation=operation,
            wait=retry.delay(failure, spec.retry, task["retry_count"]),
            attempt=attempt,
        )
    if failure.open_operation:  # nobody can be asked what became of the call: unknown, not failed
        return _ask_unknown(changes, message, attempt)
    if spec.retry.on_permanent == "needs_review":
        details |= {"reason": Reason.PERMANENT_FAILURE}
        return Decision(Move.ASK, changes, note=message, details=details, operation=operation, attempt=attempt)
    return Decision(Move.FAIL, changes, note=message, details=details, operation=operation, attempt=attempt)


def _needs_input(needed: NeedsInput) -> Decision:
    """The call stays open: whoever claims the task after the answer follows it."""
    attempt = {"outcome": "needs_review", "reference": clean(needed.reference)}
    details = {"reason": Reason.INPUT_NEEDED, "form": clean(needed.form)}
    return Decision(Move.ASK, _CLEARED, note=clean(needed.message)[:MAX_ERROR], details=details, attempt=attempt)


def _later(later: Later) -> Decision:
    message = clean(later.message)[:MAX_ERROR]
    changes = _CLEARED | {"last_error": message}
    attempt = {"outcome": "waited", "error": message}
    operation = {"transient": "rejected", "unknown": "unknown"}.get(later.tried, "")
    return Decision(Move.RECONCILE, changes, note=message, operation=operation, wait=later.seconds, attempt=attempt)


def _unknown(spec: TypeSpec, task: RowMapping, outcome: UnknownOutcome, may_resend: bool) -> Decision:
    message = clean(outcome.message)[:MAX_ERROR]
    changes: dict[str, Any] = {
        "last_error": message,
        "error_class": ErrorClass.UNKNOWN,
        "error_cause": Cause.UNKNOWN,
    }
    attempt = {
        "outcome": "unknown",
        "error_class": ErrorClass.UNKNOWN,
        "error_cause": Cause.UNKNOWN,
        "error": message,
        "raw_text": clean(outcome.raw_text),
    }
    if may_resend and task["retry_count"] < task["max_retries"]:
        failure = Failure(ErrorClass.UNKNOWN, Cause.UNKNOWN, message)
        return Decision(
            Move.RETRY,
            changes | {"retry_count": task["retry_count"] + 1},
            note=message,
            operation="unknown",
            wait=retry.delay(failure, spec.retry, task["retry_count"]),
            attempt=attempt,
        )
    return _ask_unknown(changes, message, attempt)


def _ask_unknown(changes: dict[str, Any], message: str, attempt: dict[str, Any]) -> Decision:
    return Decision(
        Move.ASK_UNKNOWN,
        changes,
        note=message,
        details={"reason": Reason.UNKNOWN_OUTCOME},
        operation="unknown",
        attempt=attempt | {"outcome": "unknown"},
    )


# After a success the last failure is history: it stays in the events, not on the row.
_CLEARED: dict[str, Any] = {"last_error": None, "error_class": None, "error_cause": None}
