"""The two handlers that need nothing outside: `echo` for trials, `none` for work that goes straight to a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from board.ports import Job, NotStarted, Outcome, SentOperation, Success


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
