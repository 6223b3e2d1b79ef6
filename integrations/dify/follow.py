"""Finds out what became of a run when the stream did not tell: asks for its detail, else searches the run log.

A request that fails on the way proves nothing. Only Dify's own answer ends the search; until then the operation
stays open and the next attempt asks again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from board.ports import Cause, ErrorClass, Failure, Job, Lost, NotSent, NotStarted, Refused, UnknownOutcome
from integrations.dify.client import CannotLookUp, Client, Run
from integrations.dify.errors import ApiError
from integrations.dify.jsontext import one_line

# The log is searched from before the request on: the clocks of the two machines may differ. `user` is unique to the
# attempt, so a wide margin finds nothing wrong.
CLOCK_MARGIN = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between two questions: `first`, then twice as long each time, up to `cap`.

    look: between two looks at a run that is expected to call back.
    """

    first: float = 1.0
    cap: float = 15.0
    look: float = 30.0

    def of_runs(self, job: Job) -> tuple[float, float]:
        """The first pause and the longest one between two looks at a run of this job."""
        return (self.look, self.look) if job.wait == "callback" else (self.first, self.cap)


class Deadline:
    """The end of this attempt, a little before the board would end it: time to say how it stands."""

    def __init__(self, timeout: float) -> None:
        self.at = asyncio.get_running_loop().time() + timeout - min(2.0, timeout / 10)

    def left(self) -> float:
        return max(0.0, self.at - asyncio.get_running_loop().time())

    async def sleep(self, seconds: float) -> bool:
        """Sleep, but not past the end. False when the time is over."""
        await asyncio.sleep(min(seconds, self.left()))
        return self.left() > 0


@dataclass(slots=True)
class Search:
    """One search for one call. user and sent_at (left out: now) are those of the attempt that made it."""

    job: Job
    client: Client
    deadline: Deadline
    user: str
    pace: Pace
    sent_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def outcome(self, run_id: str | None) -> Run | NotStarted | Failure | UnknownOutcome:
        """The run once it is settled; NotStarted when Dify has shown, after the grace time, that there is none.

        A Failure with an open operation means that the answer is still to come or that nobody could be asked.
        """
        grace_end = self._grace_end()
        try:
            if run_id is not None:
                followed = await self._follow(run_id, grace_end)
                if followed is not None:
                    return followed
            found = await self._find(grace_end)
            if not isinstance(found, str):
                return found
            await self.job.reference(found)
            followed = await self._follow(found, grace_end)
        except Refused as error:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error), open_operation=True)
        return followed or UnknownOutcome(f"Dify lists the run {found} but does not show it.")

    def _grace_end(self) -> float:
        sent_at = self.sent_at if self.sent_at.tzinfo else self.sent_at.replace(tzinfo=UTC)
        age = max(0.0, (datetime.now(UTC) - sent_at).total_seconds())
        return asyncio.get_running_loop().time() + max(0.0, self.client.grace - age)

    async def _follow(self, run_id: str, grace_end: float) -> Run | Failure | None:
        """The settled run; None when Dify says, also after the grace time, that it knows no such run."""
        first, cap = self.pace.of_runs(self.job)
        wait, trouble = first, ""
        while True:
            pause = wait
            missing_is_final = self._now() >= grace_end
            try:
                run = await self.client.run_detail(run_id, within=self._patience())
                if run.settled:
                    return run
                trouble = ""
            except (NotSent, Lost) as error:
                trouble = str(error)
            except ApiError as error:
                if error.status == 404:
                    if missing_is_final:
                        return None
                    pause = self._not_past(pause, grace_end)
                elif not error.unsure and error.status != 429:
                    return self.client.failure(error, open_operation=True)
                trouble = self.client.failure(error).message
                pause = max(pause, error.retry_after or 0.0)
            if not await self.deadline.sleep(pause):
                return self.still_open(run_id, trouble)
            wait = min(wait * 2, cap)

    async def _find(self, grace_end: float) -> str | NotStarted | Failure | UnknownOutcome:
        """The id of the run that this call started, from the run log."""
        wait, trouble = self.pace.first, ""
        while True:
            pause = wait
            # The log may lag behind the request: only a look after the grace time proves that there is no run.
            nothing_is_final = self._now() >= grace_end
            try:
                runs = await self.client.runs_of(self.user, self.sent_at - CLOCK_MARGIN, within=self._patience())
                if runs:
                    return runs[0].id
                if nothing_is_final:
                    return NotStarted("Dify's run log shows no run for this request.")
                pause, trouble = self._not_past(pause, grace_end), ""
            except (NotSent, Lost) as error:
                trouble = str(error)
            except CannotLookUp as error:
                return UnknownOutcome(f"Dify's answer was lost and its run log does not help: {error}.")
            except ApiError as error:
                told = self.client.failure(error, open_operation=True)
                if told.cause is Cause.AUTH:
                    return told  # the key can be mended, and then the run be found
                if not error.unsure and error.status != 429:
                    return UnknownOutcome(f"Dify's answer was lost and its run log cannot be read. {told.message}")
                trouble = told.message
                pause = max(pause, error.retry_after or 0.0)
            if not await self.deadline.sleep(pause):
                return self.still_open(None, trouble)
            wait = min(wait * 2, self.pace.cap)

    def still_open(self, run_id: str | None, trouble: str = "") -> Failure:
        """The time of this attempt is over and the run may still be going on."""
        seconds = f"{self.job.timeout:g} s"
        if run_id is None:
            message = f"Dify's answer was lost, and within {seconds} it could not be found out whether a run started."
        else:
            message = f"Dify had not finished the run {run_id} within {seconds}."
        message += " The next attempt asks for it before anything is sent again."
        failure = Failure(
            ErrorClass.TRANSIENT,
            Cause.TIMEOUT,
            message,
            code="still_open",
            open_operation=True,
            open_for=self.client.grace if run_id is None else 0.0,
        )
        if trouble:
            failure = replace(failure, cause=Cause.NETWORK, message=one_line(f"{message} Last trouble: {trouble}", 500))
        return failure

    def _patience(self) -> float:
        return max(0.1, min(30.0, self.deadline.left()))

    def _not_past(self, pause: float, grace_end: float) -> float:
        """A pause that ends at the latest just after the grace time, so that the deciding look is not late."""
        return min(pause, max(0.0, grace_end - self._now()) + 0.01)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
