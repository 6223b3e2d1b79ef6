"""The action `webhook`: after approval the result is POSTed to a connection, signed, once as far as that can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from board.effects import calls, status
from board.effects.calls import CallingJob
from board.ports import (
    Answer,
    Cause,
    ConnectionView,
    ErrorClass,
    Failure,
    NotStarted,
    Outcome,
    SentOperation,
    Success,
    UnknownOutcome,
)


class ActionJob(CallingJob, Protocol):
    """What only the board's own actions see: the envelope with the whole task."""

    def envelope(self) -> bytes: ...


def no_inputs(block: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """What is said about `inputs` of an action that always sends the whole task."""
    return () if block.get("inputs") is None else [("inputs", "is not taken: the call always bears the whole task")]


class WebhookAction:
    name = "webhook"
    phases = ("act",)
    connection_kind = "webhook"
    side_effects = True

    def check(self, handler: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        return no_inputs(handler)

    async def run(self, job: ActionJob) -> Outcome:
        connection = job.connection
        assert connection is not None
        answer = await calls.call(job, connection.url, kind="webhook.action", body=job.envelope(), fixed=True)
        if isinstance(answer, Answer):
            return Success(reference=answer.headers.get("x-request-id"))
        return self._askable(connection, answer)

    async def reconcile(self, job: ActionJob, operation: SentOperation) -> Outcome | NotStarted:
        connection = job.connection
        assert connection is not None
        if not status.may_ask(connection):  # a plain webhook cannot be asked what became of a call
            return UnknownOutcome(f"A call to {operation.target} was sent, and no answer is known.")
        headers = calls.request_headers(connection, operation.key, b"", job.webhook_secret)
        return await status.ask(job, operation, headers)

    @staticmethod
    def _askable(connection: ConnectionView, outcome: Outcome) -> Outcome:
        """An unknown outcome stays open where the receiver can be asked about it."""
        if not isinstance(outcome, UnknownOutcome) or not status.may_ask(connection):
            return outcome
        return Failure(
            ErrorClass.UNKNOWN,
            Cause.NETWORK,
            f"{outcome.message} It is asked what became of the call.",
            open_operation=True,
            open_for=status.grace(connection),
        )
