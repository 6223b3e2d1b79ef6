"""The action `resume`: the result goes to the flow that waits at the task's `callback_url`, an n8n Wait node.

The call may be repeated: n8n continues an execution once, and says when there is nothing to continue. So a lost answer
asks nobody: the same call is made again, under the same id, and its answer tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from board.effects import backoff, calls
from board.effects.answers import word
from board.effects.n8n_answers import ENDED, TOO_EARLY
from board.effects.tried import SoFar
from board.effects.webhook import ActionJob, no_inputs
from board.ports import (
    Answer,
    Cause,
    ErrorClass,
    Failure,
    Later,
    NotStarted,
    Outcome,
    SentOperation,
    Success,
    UnknownOutcome,
)

# So long a flow that has not come to its Wait node is waited for: between starting a task and waiting for it lie
# moments. One that is busy with something else never listens.
EARLY_FOR = 300.0
# So long everything else is tried again, as a callback is: an n8n that is down over a weekend still gets its word.
TROUBLE_FOR = 3 * 86400.0
# The longest pause while the flow is not there yet; it would wait for us then.
LONGEST_EARLY = 15.0


class ResumeJob(ActionJob, Protocol):
    callback_url: str | None

    async def so_far(self) -> SoFar: ...


class ResumeAction:
    name = "resume"
    phases = ("act",)
    connection_kind: str | None = "webhook"
    connection_optional = True  # where the Wait node asks for a header, a password or a token
    side_effects = False

    def check(self, handler: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        return no_inputs(handler)

    async def run(self, job: ResumeJob) -> Outcome:
        if job.callback_url is None:
            message = "The task has no callback_url, so there is no flow to resume."
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, message)
        if (elsewhere := calls.elsewhere(job.connection, job.callback_url)) is not None:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, elsewhere)
        seconds = min(calls.TIMEOUT, job.timeout)
        answer = await calls.call(
            job,
            job.callback_url,
            kind="webhook.resume",
            body=job.envelope(),
            fixed=True,
            seconds=seconds,
            resumes=True,
        )
        if isinstance(answer, Answer):
            return Success(reference=answer.headers.get("x-request-id"))
        return await self._follows(job, answer) if isinstance(answer, Failure | UnknownOutcome) else answer

    async def reconcile(self, job: ResumeJob, operation: SentOperation) -> Outcome | NotStarted:
        return await self.run(job)

    @staticmethod
    async def _follows(job: ResumeJob, outcome: Failure | UnknownOutcome) -> Outcome:
        """Another try without spending a retry, as long as that is patient and not stubborn; then as for any call."""
        if job.operation is None:  # refused by the ledger: nothing was sent
            return outcome
        so_far = await job.so_far()
        code = outcome.code if isinstance(outcome, Failure) else None
        if code == ENDED and so_far.may_have_arrived:
            return Success()  # an earlier try, whose answer was lost, has continued it
        early = code == TOO_EARLY
        wait = backoff.pause(outcome, so_far.tries, (EARLY_FOR if early else TROUBLE_FOR) - so_far.seconds)
        if wait is None:
            return outcome
        return Later(outcome.message, min(wait, LONGEST_EARLY) if early else wait, tried=word(outcome))
