"""The handler `n8n.webhook`: one task, one run of the workflow behind an n8n Webhook node."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from board.ports import (
    Answer,
    Cause,
    ErrorClass,
    Failure,
    Job,
    JsonObject,
    NotStarted,
    Outcome,
    SentOperation,
    Success,
    UnknownOutcome,
    Wait,
)

KIND = "n8n.webhook"
# Seconds before the end of an attempt in which it says by itself how it stands.
LAST_WORDS = 2.0
DONE_BEFORE = Failure(
    ErrorClass.PERMANENT,
    Cause.PRECONDITION,
    "This was done before, in this very round, so the workflow was not started again. Make a new task for it.",
)


class N8nWebhook:
    """Posts the inputs to a Webhook node, and waits until the workflow calls back, or answers by itself."""

    name = "n8n.webhook"
    connection_kind: str | None = "webhook"
    side_effects = True
    waits: Sequence[Wait] = ("callback", "blocking")

    def check(self, handler: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        """Problems of a type's handler block."""
        inputs = handler.get("inputs")
        if inputs is not None and not isinstance(inputs, Mapping):
            return [("inputs", "must be an object: what the workflow finds under `body.inputs`")]
        return []

    async def run(self, job: Job) -> Outcome:
        """Start the workflow. Nothing but its own word, or a clear refusal, ends the attempt."""
        end = _now() + job.timeout - min(LAST_WORDS, job.timeout / 10)
        try:
            body = json.dumps(_body(job), ensure_ascii=False, allow_nan=False).encode()
        except ValueError:
            message = "Nothing was sent to n8n: `handler.inputs` hold a number that JSON does not know (NaN, Infinity)."
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, message)
        if job.wait == "blocking":
            return _result(await job.post(kind=KIND, body=body, timeout=job.timeout, whole=True))
        answer = await job.post(kind=KIND, body=body)
        if isinstance(answer, Success):
            return DONE_BEFORE
        # Where the answer was lost the workflow may run all the same, and then it calls back. It may also have done so
        # before it answered, whatever it answered.
        waits = isinstance(answer, Answer | UnknownOutcome)
        called = await job.called_back(max(0.0, end - _now()) if waits else 0.0)
        if called is not None:
            return called.outcome()
        if not isinstance(answer, Answer | UnknownOutcome):
            return answer
        lost = f"{answer.message} " if isinstance(answer, UnknownOutcome) else ""
        return UnknownOutcome(f"{lost}{_silent(job)}")

    async def reconcile(self, job: Job, operation: SentOperation) -> Outcome | NotStarted:
        """A started workflow cannot be asked; its callback, while there is time for it, is the only word of it."""
        if job.wait == "blocking":
            return UnknownOutcome(f"A call to {operation.target} was sent, and its answer was lost.")
        age = (datetime.now(UTC) - operation.sent_at).total_seconds()
        called = await job.called_back(min(job.timeout, max(0.0, job.timeout - age)))
        return called.outcome() if called is not None else UnknownOutcome(_silent(job))


def _body(job: Job) -> JsonObject:
    """What the workflow gets. `attempt` and `round` tell a repetition from the first time."""
    return {
        "event": "task.work",
        "task_id": job.task_id,
        "type": job.type,
        "priority": job.priority,
        "round": job.round,
        "attempt": job.attempt,
        "inputs": job.inputs,
        "callback_url": job.answer_url,
    }


def _result(answer: Answer | Outcome) -> Outcome:
    """The workflow's own answer as the result: what its last node, or its Respond node, gave."""
    if isinstance(answer, Success):
        return DONE_BEFORE
    if not isinstance(answer, Answer):
        return answer
    text = answer.text
    if not text.strip():
        return Success(result=None, ask="empty_output", ask_message="The workflow answered with nothing.")
    try:
        return Success(result=json.loads(text, parse_constant=_no_json), raw_text=text)
    except (ValueError, RecursionError):
        message = "The workflow answered with something else than JSON."
        return Success(result=text[:100_000], raw_text=text, ask="invalid_output", ask_message=message)


def _no_json(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _silent(job: Job) -> str:
    return f"The workflow was called, and n8n has not called back within {job.timeout:g} s."


def _now() -> float:
    return asyncio.get_running_loop().time()
