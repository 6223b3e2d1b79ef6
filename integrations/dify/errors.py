"""How Dify's errors are read: one table of rules, the first that matches decides.

Dify says the same thing in several places: as HTTP status with a JSON body, as an `error` event inside a stream that
began with 200, and as the free text of a run that failed. All three come here as an `ApiError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from board.ports import Answer, Cause, ErrorClass, Failure, JsonObject
from integrations.dify.jsontext import loads_object, one_line

FILES_LOST = "files_left_out"  # our own code for a run that began without its files
UPLOAD_LOST = "upload-lost"  # the name of the rule that the handler asks about
RUN_FAILED = "workflow_failed"  # our own code for a run that ended with the status "failed"

_LONGEST_WAIT = 86_400.0  # a Retry-After of more than a day is taken for a day
_HTML = re.compile(r"<!doctype\s|<html\b|<head\b|<body\b", re.IGNORECASE)
# Keys as Dify (app-, dataset-) and model providers (sk-, …) write them, and whatever follows "Bearer".
_KEYS = re.compile(r"\b(?:app|dataset|sk|pk|rk|gsk|xai)-[\w-]{8,}|\bBearer\s+[\w.~+/=-]{8,}|\bAIza[\w-]{20,}")


@dataclass(eq=False)
class ApiError(Exception):
    """What Dify said instead of an answer. status: HTTP or event status, 0 when there was none."""

    status: int
    code: str | None = None
    message: str = ""
    retry_after: float | None = None

    @property
    def unsure(self) -> bool:
        """True when the request may have taken effect all the same: a gateway gave up, the server broke, or an event in
        the middle of a run told of trouble without saying of which kind."""
        return self.status >= 500 or self.status in (0, 200, 408)


@dataclass(frozen=True, slots=True)
class Rule:
    """All conditions that are given must hold. sentence: what happened and what to do; {connection} is its name."""

    name: str
    error_class: ErrorClass
    cause: Cause
    sentence: str
    codes: tuple[str, ...] = ()
    statuses: tuple[range, ...] = ()
    message: str = ""  # a regular expression, case-insensitive

    def matches(self, error: ApiError) -> bool:
        return (
            (not self.codes or error.code in self.codes)
            and (not self.statuses or any(error.status in statuses for statuses in self.statuses))
            and (not self.message or re.search(self.message, error.message, re.IGNORECASE) is not None)
        )


def _only(*statuses: int) -> tuple[range, ...]:
    return tuple(range(status, status + 1) for status in statuses)


_T, _Q, _P, _U = ErrorClass.TRANSIENT, ErrorClass.QUOTA, ErrorClass.PERMANENT, ErrorClass.UNKNOWN
_MODEL_LIMIT = r"rate.?limit|too many requests|\b429\b|quota|throttl|overloaded|\b529\b"

RULES: tuple[Rule, ...] = (
    # Since 1.13 a missing input of a streamed run may come without a code, with status 500, or as a failed run.
    Rule("missing-input", _P, Cause.PRECONDITION, "An input that the app's start form requires is missing or wrong: "
         "correct `handler.inputs` of the task type or the payload.", message=r"is required in input form"),
    # An upload belongs to one user, and may be gone: the handler uploads once more, then this stands.
    Rule(UPLOAD_LOST, _P, Cause.PRECONDITION, "Dify does not know the uploaded file.", message=r"invalid upload file"),
    Rule("files-left-out", _P, Cause.PRECONDITION, "Dify began the run without its files, so it was stopped: check the "
         "app's upload settings.", codes=(FILES_LOST,)),
    # The app's own limit is documented as 429 but comes as 400, because another error handler takes it first.
    Rule("app-busy", _T, Cause.RATE_LIMIT, "The Dify app works on as many requests as it may at once.",
         codes=("invalid_param",), message=r"too many requests"),
    Rule("app-busy-429", _T, Cause.RATE_LIMIT, "The Dify app works on as many requests as it may at once.",
         codes=("too_many_requests",)),
    Rule("workspace-quota", _Q, Cause.RATE_LIMIT, "The Dify workspace has used up its quota of runs for now; "
         "its plan may need a change.", codes=("rate_limit_error",)),
    Rule("provider-quota", _Q, Cause.RATE_LIMIT, "The quota at the model provider is used up: top it up or choose "
         "another model in Dify.", codes=("provider_quota_exceeded",)),
    # A model provider's own 429 comes as HTTP 400 or as the text of a failed run.
    Rule("model-rate-limit", _Q, Cause.RATE_LIMIT, "The model provider limits the rate of requests.",
         codes=("completion_request_error", RUN_FAILED), message=_MODEL_LIMIT),
    Rule("chatflow-rate-limit", _Q, Cause.RATE_LIMIT, "The model provider limits the rate of requests.",
         codes=("invalid_param",), message=rf"^run failed:.*(?:{_MODEL_LIMIT})"),
    Rule("key-refused", _P, Cause.AUTH, "Dify refused the key: check `key` in the settings of the connection "
         "“{connection}”.", codes=("unauthorized",)),
    Rule("forbidden", _P, Cause.AUTH, "Dify does not allow this call: check in Dify that the app exists, its API is "
         "switched on and its plan allows it, and check the settings of the connection “{connection}”.",
         codes=("forbidden", "workflow_version_execution_not_allowed")),
    Rule("wrong-app", _P, Cause.PRECONDITION, "The key belongs to an app of another kind or to one that cannot run: "
         "use the key of a published app of the kind that `handler.use` is for in the connection “{connection}”.",
         codes=("not_workflow_app", "not_chat_app", "not_completion_app", "app_unavailable")),
    Rule("not-published", _P, Cause.PRECONDITION, "The app is not published: publish it in Dify, then requeue.",
         codes=("agent_not_published",)),
    Rule("workflow-not-published", _P, Cause.PRECONDITION, "The app is not published: publish it in Dify, then "
         "requeue.", codes=("invalid_param",), message=r"not published"),
    Rule("model-settings", _P, Cause.PRECONDITION, "The model is not set up in Dify: check the model provider's "
         "settings there.", codes=("provider_not_initialize", "model_currently_not_support")),
    Rule("chatflow-failed", _U, Cause.UNKNOWN, "The Dify app failed.", codes=("invalid_param",),
         message=r"^run failed:"),
    Rule("refused-inputs", _P, Cause.PRECONDITION, "Dify refused the request: compare `handler.inputs` of the task "
         "type with the app's start form.", codes=("invalid_param", "bad_request", "unsupported_media_type")),
    Rule("not-found", _P, Cause.PRECONDITION, "Dify does not know what was asked for.", codes=("not_found",)),
    Rule("conversation-over", _P, Cause.PRECONDITION, "This conversation is over in Dify: start a new one.",
         codes=("conversation_completed",)),
    Rule("file-refused", _P, Cause.PRECONDITION, "Dify refused a file: check its size and type against the app's "
         "upload settings.", codes=("file_too_large", "unsupported_file_type", "no_file_uploaded", "too_many_files",
                                    "file_extension_blocked", "filename_not_exists_error")),
    Rule("form-closed", _P, Cause.PRECONDITION, "The form in Dify was answered already or has expired.",
         codes=("human_input_form_submitted", "human_input_form_expired")),
    Rule("form-refused", _P, Cause.PRECONDITION, "Dify refused the answers to its form: correct them, the form is "
         "still open.", codes=("invalid_form_data",)),
    # It mixes a bad key, a bad request, the provider's 5xx and lost connections: few tries, then a person.
    Rule("model-failed", _U, Cause.UPSTREAM_4XX, "The call of the model failed in Dify.",
         codes=("completion_request_error",)),
    Rule("run-failed", _U, Cause.UNKNOWN, "The Dify workflow failed.", codes=(RUN_FAILED,)),
    Rule("gateway-timeout", _T, Cause.TIMEOUT, "A gateway before Dify gave up waiting.", statuses=_only(408, 504, 524)),
    Rule("server-error", _T, Cause.UPSTREAM_5XX, "Dify had an error of its own or could not be reached behind its "
         "gateway.", statuses=(range(500, 600),)),
    Rule("server-error-code", _T, Cause.UPSTREAM_5XX, "Dify had an error of its own.",
         codes=("internal_server_error", "unknown")),
    Rule("http-429", _T, Cause.RATE_LIMIT, "Dify or the gateway before it limits the rate of requests.",
         statuses=_only(429)),
    Rule("http-401", _P, Cause.AUTH, "Dify refused the key: check `key` in the settings of the connection "
         "“{connection}”.", statuses=_only(401)),
    Rule("http-403", _P, Cause.AUTH, "Dify or the gateway before it does not allow this call: check the settings of "
         "the connection “{connection}”.", statuses=_only(403)),
    Rule("http-413", _P, Cause.PRECONDITION, "The request is larger than Dify or the gateway before it takes: send "
         "less in `handler.inputs`.", statuses=_only(413)),
    Rule("wrong-address", _P, Cause.PRECONDITION, "This address does not answer like Dify's API: check `url` in the "
         "settings of the connection “{connection}”; it usually ends in /v1.",
         statuses=(*_only(200, 404, 405, 410), range(300, 400))),
    Rule("http-4xx", _P, Cause.UPSTREAM_4XX, "Dify refused the request.", statuses=(range(400, 500),)),
    Rule("unclear", _U, Cause.UNKNOWN, "Dify answered with an error that is not known here."),
)  # fmt: skip


def read_error(answer: Answer) -> ApiError:
    """An HTTP answer that is no success. Only Dify's own JSON is kept; an HTML page never is."""
    return error_from(
        loads_object(answer.text) or {},
        status=answer.status,
        retry_after=read_retry_after(answer.headers.get("retry-after")),
    )


def error_from(body: JsonObject, *, status: int = 0, retry_after: float | None = None) -> ApiError:
    """An error body or an `error` event: {code, message, status}. A status given by HTTP goes before the body's."""
    said = body.get("status")
    if not status and isinstance(said, int | str) and re.fullmatch("[1-5][0-9]{2}", str(said)):
        status = int(said)
    code, message = body.get("code"), body.get("message")
    return ApiError(
        status=status,
        code=one_line(code, 80) if isinstance(code, str) and code else None,
        message=plain(message) if isinstance(message, str) else "",
        retry_after=retry_after,
    )


def run_error(text: object) -> ApiError:
    """The error of a run that Dify itself reports as failed."""
    return ApiError(status=0, code=RUN_FAILED, message=plain(text) if isinstance(text, str) else "")


def classify(error: ApiError, connection: str, secrets: Iterable[str] = (), *, open_operation: bool = False) -> Failure:
    """The failure that a person reads and that the retry rules see. secrets: texts that must not appear in it."""
    rule = next(rule for rule in RULES if rule.matches(error))
    sentence = rule.sentence.format(connection=connection)
    message = hide(error.message, secrets)
    marks = [error.code] if error.code and error.code not in (RUN_FAILED, FILES_LOST) else []
    if error.status and error.status != 200:
        marks.append(f"HTTP {error.status}" if not marks else str(error.status))
    mark = f" ({', '.join(marks)})" if marks else ""
    said = f" Dify says: {message}{mark}" if message else mark
    return Failure(
        error_class=rule.error_class,
        cause=rule.cause,
        message=hide(sentence + said, secrets),
        code=hide(error.code, secrets) if error.code else None,
        http_status=error.status or None,
        retry_after=error.retry_after,
        rule=rule.name,
        open_operation=open_operation,
    )


def read_retry_after(value: str | None) -> float | None:
    """Seconds to wait from a Retry-After header: a number of seconds or an HTTP date. None when it says nothing."""
    if value is None:
        return None
    text = value.strip()
    try:
        if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,6})?", text):
            seconds = float(text)
        else:
            at = parsedate_to_datetime(text)
            seconds = (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), _LONGEST_WAIT)


def plain(text: str) -> str:
    """Dify's own words, short and on one line; an HTML page in them is left out."""
    page = _HTML.search(text)
    return one_line(_KEYS.sub("[key]", text[: page.start()] if page else text))


def hide(text: str, secrets: Iterable[str]) -> str:
    """The text without the given secrets and without anything that looks like a key."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "[key]")
    return _KEYS.sub("[key]", text)
