"""Handlers without a call: `echo` for trials, `none` for work that goes straight to a person, `outside` for claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from board.ports import Cause, ErrorClass, Failure, Job, NotStarted, Outcome, SentOperation, Success


class Echo:
    """Returns its inputs (the payload, where the type names none)."""

    name = "echo"
    connection_kind: str | None = None
    side_effects = False

    def check(self, handler: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        return ()

    async def run(self, job: Job) -> Outcome:
        return Success(result=job.inputs)

    async def reconcile(self, job: Job, operation: SentOperation) -> Outcome | NotStarted:
        return NotStarted()


class Direct(Echo):
    """Does nothing: a person decides about the payload."""

    name = "none"

    async def run(self, job: Job) -> Outcome:
        return Success(result=None)


class Outside(Echo):
    """The work is done by a program that claims the task over HTTP; the board's own workers never take it."""

    name = "outside"
    side_effects = True

    async def run(self, job: Job) -> Outcome:
        message = "This type is worked on by outside programs (POST /claims), not by the board's own workers."
        return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, message)
