"""What a handler answers: the end of one attempt, in the words that the board settles it by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeAlias

Json: TypeAlias = Any  # what json.loads gives: dict, list, str, int, float, bool, None
JsonObject: TypeAlias = dict[str, Any]

Wait = Literal["stream", "blocking", "callback"]
AskReason = Literal["partial_result", "empty_output", "invalid_output"]


class ErrorClass(StrEnum):
    """How a failure is treated: see docs/retries.md."""

    TRANSIENT = "transient"  # the same request may succeed later: retried with backoff
    QUOTA = "quota"  # a rate or quota limit: retried, waits longer, Retry-After honoured
    PERMANENT = "permanent"  # nothing changes by trying again: failed at once, or asks a person
    UNKNOWN = "unknown"  # it cannot be told: few retries, then failed or a person


class Cause(StrEnum):
    """Why it failed, in the fixed classes that reports count."""

    TIMEOUT = "timeout"
    NETWORK = "network"
    UPSTREAM_4XX = "upstream_4xx"
    UPSTREAM_5XX = "upstream_5xx"
    AUTH = "auth"
    RATE_LIMIT = "rate_limit"
    BAD_OUTPUT = "bad_output"
    PRECONDITION = "precondition"
    CRASH = "crash"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Success:
    """The work is done. `ask` sends it to a person whatever the type's review rules say.

    result: any JSON value, shown and handed on. judgement: summary, advice, verdict, confidence (0 to 1), reasons,
    risks; left out, the type's `judgement` paths are read from the result. raw_text: what the model wrote, kept with
    the attempt. tokens: total tokens; cost: a decimal text with its currency, such as "0.0021 USD".
    """

    result: Json = None
    judgement: JsonObject | None = None
    raw_text: str | None = None
    tokens: int | None = None
    cost: str | None = None
    ask: AskReason | None = None
    ask_message: str | None = None
    reference: str | None = None  # the outside system's own id of what was done


@dataclass(frozen=True, slots=True)
class Failure:
    """The attempt failed. `message` is one plain sentence for a person, without secrets, at most ~500 characters.

    http_status and code are what the outside system said; the type's `retry.rules` may match on them. retry_after:
    seconds the outside system asked to wait. open_operation: True where the announced call may still be going on: the
    board asks again (`reconcile`) after a pause, without spending a retry, and in the end asks a person; it sends
    nothing meanwhile. open_for: seconds since sending during which no answer of the outside system can be final (its
    log lags); the board asks at least that long.
    """

    error_class: ErrorClass
    cause: Cause
    message: str
    code: str | None = None
    http_status: int | None = None
    retry_after: float | None = None
    rule: str | None = None  # the name of the rule that classed the error
    raw_text: str | None = None
    open_operation: bool = False
    open_for: float = 0.0
    tokens: int | None = None  # what the attempt has cost all the same, as in `Success`
    cost: str | None = None


@dataclass(frozen=True, slots=True)
class UnknownOutcome:
    """Something was sent and nobody can tell whether it happened. Never folded into a failure."""

    message: str
    raw_text: str | None = None


@dataclass(frozen=True, slots=True)
class NotStarted:
    """Only from `reconcile`: the target has proven that the earlier call never took effect."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing has failed for good: what it needs is busy, or not there yet. Comes again, and no retry is spent.

    tried: what the call of this attempt came to: nothing was sent, "transient" (it is proven that nothing happened) or
    "unknown"; after the last one `reconcile` is asked before anything else.
    """

    message: str
    seconds: float  # until then
    tried: str = ""


@dataclass(frozen=True, slots=True)
class NeedsInput:
    """The work waits outside for a person to fill in a form. The call stays open; the answer goes to `reconcile`.

    form: {id, title, content (Markdown), fields: [{name, kind: text|choice|file|files, options, default}],
    actions: [{id, title}], expires_at: RFC 3339 or None}. Every field must be given. It is shown to people and programs
    that may read the task: no secrets in it.
    """

    message: str
    form: JsonObject
    reference: str | None = None


Outcome: TypeAlias = Success | Failure | UnknownOutcome | Later | NeedsInput


@dataclass(frozen=True, slots=True)
class CalledBack:
    """What came by the callback address of an attempt: how the work ended that was started and not waited for.

    error_class, code and retry_after say more about a failure, as in `Failure`; reference: the outside system's own id.
    """

    succeeded: bool
    result: Json = None
    judgement: JsonObject | None = None
    message: str | None = None
    error_class: ErrorClass = ErrorClass.TRANSIENT
    code: str | None = None
    retry_after: float | None = None
    reference: str | None = None

    def outcome(self) -> Success | Failure:
        if self.succeeded:
            return Success(self.result, self.judgement, reference=self.reference)
        cause = Cause.RATE_LIMIT if self.error_class is ErrorClass.QUOTA else Cause.UNKNOWN
        message = self.message or "It was called back that the work failed, without a reason."
        return Failure(self.error_class, cause, message, code=self.code, retry_after=self.retry_after)
