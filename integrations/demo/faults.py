"""What the stand-in does wrong on purpose: named faults, how they are asked for, and which run gets which."""

from __future__ import annotations

import base64
import dataclasses
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

HTML_504 = "<html><h1>504 Gateway Time-out</h1></html>"
STOPPED = "Stopped by user."

MARKER = re.compile(r"\[\[fault:([^\]]+)\]\]")  # in any text of the inputs: [[fault:slow seconds=5]]


@dataclass(frozen=True, slots=True)
class Plan:
    """One run from the stand-in's side: what happens to it, and what the caller gets to see of it. Times in seconds.

    The named faults in FAULTS are plans; whoever asks for one may set any field anew.
    """

    # The run itself
    start: bool = True  # False: nothing is ever started
    run_id: str | None = None  # None: a fresh UUID
    recorded: bool = True  # False: neither the run's detail nor the log ever knows it
    queue_seconds: float = 0.0  # the job waits for a worker: no row exists before it begins
    seconds: float | None = None  # working time; None: the stand-in's own pace
    nodes: bool = True  # False: it ends before its first node
    status: str = "succeeded"  # succeeded | failed | stopped | partial-succeeded | paused
    error: str | None = None
    outputs: dict[str, Any] | None = None  # None: what the judge says
    answer: str | None = None  # a form of ANSWERS: the judge's JSON comes back as a text written that way
    drop_field: str | None = None  # this field is missing in the answer
    stoppable: bool = True  # False: the stop call says success and nothing stops
    detail: str = "honest"  # what GET /workflows/run/{id} says: honest | running (for ever) | missing | error (500)
    pauses: int = 1  # with status paused: so many forms, one after the other
    form_seconds: float | None = None  # the form expires after so long, and the run goes on by itself
    web_form: bool = True  # False: the form has no web-app delivery, so no token
    keeps_answer: bool = False  # a chat app saves its answer although nobody listens any more
    # The answer to the call that started it
    http_status: int | None = None  # set: this answer instead of the run's
    code: str | None = None  # with http_status or in the error event
    message: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None  # sent as text/html in place of {code, message, status}
    http_after: float = 0.0
    # The stream
    until: str = "end"  # the last thing that is sent: nothing | started | text | end
    ending: str = "close"  # after it: close | cut | hold (open, with pings) | stall (open and silent)
    event_status: int | None = None  # set: an `error` event with this status after the last thing
    ids: bool = True  # False: the error event carries no ids
    run_id_header: bool = False  # newer releases send X-Workflow-Run-ID with the stream
    raw: str | None = None  # base64 of bytes to send in place of all events
    every: int | None = None  # raw bytes are sent in pieces of this size …
    sizes: list[int] = field(default_factory=list)  # … or of these sizes
    pause: float = 0.005  # between two pieces, so that they arrive apart
    # Uploaded files
    forget_files: bool = False  # uploads are gone before this run
    hide_files: bool = False  # the run silently goes on without its files


FAULTS: dict[str, Plan] = {
    "none": Plan(),
    "no_terminal": Plan(until="text", seconds=0.3),
    "no_terminal_running": Plan(until="text", seconds=30.0),
    "no_terminal_unknown": Plan(until="text", detail="running"),
    "drop_before_id": Plan(until="nothing", ending="cut", queue_seconds=0.5),
    "drop_after_id": Plan(until="started", ending="cut", seconds=0.3),
    "drop_not_started": Plan(start=False, until="nothing", ending="cut"),
    "html_504": Plan(http_status=504, body=HTML_504, http_after=0.05),
    "http": Plan(start=False, http_status=500, code="internal_server_error", message="Internal Server Error"),
    "provider_rate_limit": Plan(
        start=False,
        http_status=400,
        code="completion_request_error",
        message="[demo] Rate Limit Error, Error code: 429 - slow down",
    ),
    "rate_limit": Plan(
        start=False, http_status=429, code="rate_limit_error", message="quota", headers={"Retry-After": "3"}
    ),
    "too_many_requests": Plan(
        start=False,
        http_status=400,
        code="invalid_param",
        message="Too many requests. Please try again later. The current maximum concurrent requests allowed is 1.",
    ),
    "invalid_param": Plan(
        start=False, http_status=400, code="invalid_param", message="query is required in input form"
    ),
    "unauthorized": Plan(start=False, http_status=401, code="unauthorized", message="Access token is invalid"),
    "error_event": Plan(
        until="text",
        ending="hold",
        event_status=429,
        code="rate_limit_error",
        message="too many requests, try later",
        status="failed",
        error="too many requests, try later",
    ),
    "error_event_no_code": Plan(
        start=False,
        until="nothing",
        ending="hold",
        event_status=500,
        ids=False,
        message="text is required in input form",
    ),
    "synthetic_failed": Plan(
        recorded=False, nodes=False, seconds=0.0, status="failed", error="text is required in input form"
    ),
    "partial": Plan(status="partial-succeeded", error="tool timed out"),
    "empty": Plan(outputs={"text": ""}),
    "failed": Plan(status="failed", error="[demo] The model did not answer."),
    "stopped": Plan(status="stopped", error=STOPPED),
    "paused": Plan(status="paused"),
    "slow": Plan(seconds=30.0),
    "stall": Plan(until="started", ending="stall", seconds=3600.0),
    "stall_before_answer": Plan(start=False, http_status=504, body=HTML_504, http_after=3600.0),
    "raw": Plan(start=False, raw=""),
    "ignore_stop": Plan(stoppable=False),
    "forget_files": Plan(forget_files=True),
    "hide_files": Plan(hide_files=True),
    "text": Plan(answer="plain"),
    "fenced": Plan(answer="fenced"),
    "fenced_no_label": Plan(answer="fenced_no_label"),
    "think": Plan(answer="think"),
    "lone_think": Plan(answer="lone_think"),
    "citation": Plan(answer="citation"),
    "invalid_json": Plan(answer="invalid_json"),
    "refusal": Plan(answer="refusal"),
    "nul": Plan(answer="nul"),
    "surrogate": Plan(answer="surrogate"),
    "missing_field": Plan(drop_field="label"),
}


class BadFault(ValueError):
    """A fault that does not exist or has a wrong field; the message says which."""


def make_plan(name: str, changes: Mapping[str, Any]) -> Plan:
    """The named plan with some fields set anew. Raises BadFault."""
    if name not in FAULTS:
        raise BadFault(f"There is no fault {name!r}; known are {', '.join(sorted(FAULTS))}.")
    known = {entry.name for entry in dataclasses.fields(Plan)}
    for key in changes:
        if key not in known:
            raise BadFault(f"A fault has no field {key!r}; known are {', '.join(sorted(known))}.")
    plan = replace(FAULTS[name], **changes)
    if plan.raw:
        try:
            base64.b64decode(plan.raw, validate=True)
        except ValueError:
            raise BadFault("raw must be base64.") from None
    return plan


@dataclass(slots=True)
class Queued:
    """A fault waiting for the next call it fits."""

    plan: Plan
    times: int  # how many more calls get it
    match: str  # only calls whose body holds this text; "" fits all
    on: str  # run, or another call of the API: detail, logs, stop, events, upload


class Faults:
    """The programmable queue, and the faults that a text asks for."""

    def __init__(self) -> None:
        self.queue: list[Queued] = []
        self._asked: Counter[str] = Counter()

    def add(self, item: Mapping[str, Any]) -> None:
        """Queue `{fault, times?: 1, match?: "", on?: "run", …fields of Plan}`. Raises BadFault."""
        changes = dict(item)
        name = str(changes.pop("fault", "none"))
        times, match, on = changes.pop("times", 1), str(changes.pop("match", "")), str(changes.pop("on", "run"))
        if not isinstance(times, int) or times < 1:
            raise BadFault("times must be a whole number of at least 1.")
        if on not in CALLS:
            raise BadFault(f"on must be one of {', '.join(CALLS)}.")
        self.queue.append(Queued(make_plan(name, changes), times, match, on))

    def clear(self) -> None:
        self.queue.clear()
        self._asked.clear()

    def take(self, on: str, body: str) -> Plan | None:
        """The first queued fault that fits this call, used up once."""
        for entry in self.queue:
            if entry.on == on and entry.match in body:
                entry.times -= 1
                if entry.times == 0:
                    self.queue.remove(entry)
                return entry.plan
        return None

    def asked_for(self, inputs: Mapping[str, Any]) -> Plan | None:
        """The fault that the inputs themselves name, or None. `times=N` limits it to the first N runs of that text."""
        for key, value in inputs.items():
            if not isinstance(value, str) or not value:
                continue
            found = MARKER.search(value)
            words = value if key == "standin_fault" else found.group(1) if found else ""
            if not words.strip():
                continue
            name, changes = _read_words(words)
            times = changes.pop("times", None)
            if times is not None:
                text = repr(sorted((name, str(text)) for name, text in inputs.items()))
                self._asked[text] += 1
                if self._asked[text] > times:
                    continue
            return make_plan(name, changes)
        return None


CALLS = ("run", "detail", "logs", "stop", "events", "upload", "messages", "form")


def _read_words(words: str) -> tuple[str, dict[str, Any]]:
    """`slow seconds=5` as ("slow", {"seconds": 5}). Raises BadFault."""
    name, *pairs = words.split()
    changes: dict[str, Any] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign:
            raise BadFault(f"{pair!r} must be written as field=value.")
        try:
            number = float(value)
            changes[key] = int(number) if number.is_integer() and key != "seconds" else number
        except ValueError:
            changes[key] = value
    return name, changes


def without_marker(text: str) -> str:
    return MARKER.sub("", text).strip()
