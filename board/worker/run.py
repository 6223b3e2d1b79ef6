"""One attempt from claim to settlement: reconcile what was left, run the handler, hand over what it said."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from sqlalchemy import RowMapping

from board.catalogue.store import Catalogue
from board.db.engine import AWAY, Database
from board.effects import journal, open_calls, operations
from board.logs import first_line
from board.ports import (
    Cause,
    ErrorClass,
    Failure,
    FileMissing,
    NotStarted,
    Outcome,
    Stopped,
    StorageError,
    Success,
    UnknownOutcome,
)
from board.tasks.history import By
from board.tasks.ledger import Lease, Ledger
from board.together import Together
from board.worker.begun import Begun
from board.worker.ending import Ended
from board.worker.endings import Endings
from board.worker.holds import Holds
from board.worker.preparing import NotRunnable, Prepared

log = logging.getLogger(__name__)

# A handler keeps its own time; this much later it is ended from outside, whatever it does.
GRACE_AFTER_TIMEOUT = 5.0
# Endings in one commit: more gain little, and a rush order that ends meanwhile waits for these to be written.
ENDINGS_AT_ONCE = 200


class Runner:
    """Runs attempts of one worker process."""

    def __init__(self, db: Database, ledger: Ledger, catalogue: Catalogue, holds: Holds) -> None:
        self._db, self._holds = db, holds
        self._endings = Together(Endings(db, ledger, catalogue, holds.zone).write, most=ENDINGS_AT_ONCE, urgency=_lane)

    async def run(self, row: RowMapping, worker: str, prepared: Prepared | Exception) -> Ended:
        """One attempt, from its begin until its handler is through. How it ended is not written yet: that is `settle`.

        prepared: the attempt, or why it cannot begin. Whatever happens inside, it has an end.
        """
        lease = Lease(row["id"], row["lease_token"])
        by = By("worker", worker, "worker")
        job = prepared.job if isinstance(prepared, Prepared) else None
        outcome: Outcome | None = None  # stopped from outside
        try:
            if isinstance(prepared, Exception):
                raise prepared
            outcome = await self._guarded(prepared)
        except NotRunnable as error:
            outcome = error.failure
        except (Stopped, asyncio.CancelledError):
            pass
        except Exception as error:  # the database was away, or a secret cannot be opened
            if isinstance(error, AWAY):
                log.error("task %s could not be prepared: %s", row["task_id"], first_line(error))
            else:
                log.exception("task %s could not be prepared", row["task_id"])
            message = f"The attempt could not begin: {type(error).__name__}. The log has the details."
            outcome = Failure(ErrorClass.TRANSIENT, Cause.PRECONDITION, message)
        if outcome is None or job is None:
            return Ended(row, lease, by, outcome, called=0 if job is None else job.called)
        return Ended(
            row,
            lease,
            by,
            outcome,
            job.operation,
            job.may_resend,
            tuple(job.tries),
            job.answer_url is not None,
            job.called,
        )

    def settle(self, ended: Ended, then: Callable[[Exception | None], None]) -> None:
        """Write it together with what else ends now. then: called once it is written, or with why it cannot be; then
        the sweep brings the task back."""
        self._endings.hand_in(ended, then)

    async def all_settled(self) -> None:
        """Wait until everything is written."""
        await self._endings.all_done()

    # -- during ---------------------------------------------------------------------------------------------------

    async def _guarded(self, it: Prepared) -> Outcome:
        """Nothing is begun through a connection that fails, or beyond the day's tokens; what was begun is followed."""
        if it.left_open is None and (later := await self._holds.keep_back(it.job)) is not None:
            return later
        outcome = await self._outcome(it)
        await self._holds.heard(it.job, outcome)
        return outcome

    async def _outcome(self, it: Prepared) -> Outcome:
        limit: asyncio.Timeout | None = None
        try:
            work = Begun(it.handler.run(it.job) if it.left_open is None else self._after_asking(it, it.left_open))
            if work.over:
                return work.result
            async with asyncio.timeout(it.job.timeout + GRACE_AFTER_TIMEOUT) as limit:
                return await work
        except Stopped:
            raise
        except (StorageError, FileMissing) as error:
            return _without_files(error, it.job.operation is not None)
        except BaseException as error:  # also a handler's exit(), which must not end the worker
            if isinstance(error, asyncio.CancelledError) and _asked_to_stop():
                raise
            if limit is not None and limit.expired():
                sent = it.job.operation is not None
                message = f"No result within the type's time-out of {it.job.timeout:g} s."
                return Failure(ErrorClass.TRANSIENT, Cause.TIMEOUT, message, open_operation=sent)
            log.exception("handler %s failed on task %s", it.handler.name, it.job.task_id)
            message = f"The handler {it.handler.name} failed: {type(error).__name__}. The log has the details."
            sent = it.job.operation is not None
            return Failure(ErrorClass.TRANSIENT, Cause.UNKNOWN, message, open_operation=sent)

    async def _after_asking(self, it: Prepared, left: RowMapping) -> Outcome:
        """Find out what became of the call that was left open; the handler runs only where it did not happen."""
        known = await it.handler.reconcile(it.job, open_calls.as_sent(left, it.answer))
        await asyncio.to_thread(self._learned, it, known)
        if isinstance(known, UnknownOutcome) and not it.job.may_resend:
            return known
        if not isinstance(known, NotStarted | UnknownOutcome):
            return known
        word = "rejected" if isinstance(known, NotStarted) else "unknown"
        await asyncio.to_thread(self._close, left["id"], word, known.message)
        it.job.operation = None
        return await it.handler.run(it.job)

    def _learned(self, it: Prepared, known: Outcome | NotStarted) -> None:
        """Keep what the target said when it was asked what became of a call."""
        assert it.left_open is not None
        by = By("worker", it.job.row["lease_owner"] or "", "worker")
        with self._db.write() as tx:
            open_calls.asked(tx, it.left_open["id"])
            journal.note(tx, it.left_open["id"], "asked", by, _said(known))

    def _close(self, operation: int, word: str, message: str) -> None:
        with self._db.write() as tx:
            operations.close(tx, operation, word, error=message or None)


def _said(known: Outcome | NotStarted) -> str:
    if isinstance(known, Success):
        return "It took effect." + (f" Its number there: {known.reference}" if known.reference else "")
    return known.message or "It never took effect."


def _without_files(error: StorageError | FileMissing, sent: bool) -> Failure:
    transient = isinstance(error, StorageError) and error.transient
    error_class = ErrorClass.TRANSIENT if transient else ErrorClass.PERMANENT
    return Failure(error_class, Cause.PRECONDITION, str(error), open_operation=sent)


def _asked_to_stop() -> bool:
    """Whether this attempt was cancelled, and not only something that its handler had begun."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _lane(ended: Ended) -> int:
    return int(ended.row["lane"])
