"""One attempt from claim to settlement: reconcile what was left, run the handler, hand over what it said."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from sqlalchemy import RowMapping

from board.catalogue.store import Catalogue
from board.db.engine import AWAY, Database
from board.effects import journal, operations
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
from board.worker.begun import begun
from board.worker.ending import Ended
from board.worker.endings import Endings
from board.worker.holds import Holds
from board.worker.preparing import NotRunnable, Prepared

log = logging.getLogger(__name__)

# A handler keeps its own time; this much later it is ended from outside, whatever it does.
GRACE_AFTER_TIMEOUT = 5.0
# Endings in one commit: more gain little, and a rush order that ends meanwhile waits for these to be written.
ENDINGS_AT_ONCE = 200

Through = Callable[[Outcome | None, float], None]  # with how an attempt ended, and after how many seconds


class Runner:
    """Runs attempts of one worker process."""

    def __init__(self, db: Database, ledger: Ledger, catalogue: Catalogue, holds: Holds) -> None:
        self._db, self._holds = db, holds
        self._endings = Together(Endings(db, ledger, catalogue).write, most=ENDINGS_AT_ONCE, urgency=_lane)

    async def run(self, row: RowMapping, worker: str, prepared: Prepared | Exception, through: Through) -> None:
        """One attempt. Whatever happens inside, the task is settled, or left to the sweep when the lease is lost.

        prepared: the attempt, or why it cannot begin. through: told how it ended before that is written.
        """
        lease = Lease(row["id"], row["lease_token"])
        by = By("worker", worker, "worker")
        job = prepared.job if isinstance(prepared, Prepared) else None
        begin = time.monotonic()
        outcome: Outcome | None = None  # stopped from outside
        cancelled: asyncio.CancelledError | None = None
        try:
            if isinstance(prepared, Exception):
                raise prepared
            outcome = await self._guarded(prepared)
        except NotRunnable as error:
            outcome = error.failure
        except Stopped:
            pass
        except asyncio.CancelledError as error:
            cancelled = error
        except Exception as error:  # the database was away, or a secret cannot be opened
            if isinstance(error, AWAY):
                log.error("task %s could not be prepared: %s", row["task_id"], first_line(error))
            else:
                log.exception("task %s could not be prepared", row["task_id"])
            message = f"The attempt could not begin: {type(error).__name__}. The log has the details."
            outcome = Failure(ErrorClass.TRANSIENT, Cause.PRECONDITION, message)
        through(outcome, time.monotonic() - begin)
        if outcome is None or job is None:
            ended = Ended(row, lease, by, outcome)
        else:
            ended = Ended(
                row, lease, by, outcome, job.operation, job.may_resend, tuple(job.tries), job.answer_url is not None
            )
        await self._endings.ask(ended)
        if cancelled is not None:
            raise cancelled

    async def hand_back(self, row: RowMapping, worker: str) -> None:
        """Give back what was claimed and has not begun."""
        lease = Lease(row["id"], row["lease_token"])
        await self._endings.ask(Ended(row, lease, By("worker", worker, "worker"), None))

    # -- during ---------------------------------------------------------------------------------------------------

    async def _guarded(self, it: Prepared) -> Outcome:
        """Nothing is begun through a connection that fails, or beyond the day's tokens; what was begun is followed."""
        if it.left_open is None and (later := await self._holds.keep_back(it.job)) is not None:
            return later
        outcome = await self._outcome(it)
        await self._holds.heard(it.job, outcome)
        return outcome

    async def _outcome(self, it: Prepared) -> Outcome:
        limit = asyncio.timeout(None)

        def set_clock() -> None:
            limit.reschedule(asyncio.get_running_loop().time() + it.job.timeout + GRACE_AFTER_TIMEOUT)

        waits: Callable[[], None] = set_clock
        try:
            async with limit:
                if it.left_open is not None:
                    set_clock()
                    waits = _nothing
                    known = await it.handler.reconcile(it.job, operations.as_sent(it.left_open, it.answer))
                    await asyncio.to_thread(self._learned, it, known)
                    if isinstance(known, UnknownOutcome) and not it.job.may_resend:
                        return known
                    if not isinstance(known, NotStarted | UnknownOutcome):
                        return known
                    word = "rejected" if isinstance(known, NotStarted) else "unknown"
                    await asyncio.to_thread(self._close, it.left_open["id"], word, known.message)
                    it.job.operation = None
                return await begun(it.handler.run(it.job), waits)
        except Stopped:
            raise
        except (StorageError, FileMissing) as error:
            return _without_files(error, it.job.operation is not None)
        except BaseException as error:  # also a handler's exit(), which must not end the worker
            if isinstance(error, asyncio.CancelledError) and _asked_to_stop():
                raise
            if limit.expired():
                sent = it.job.operation is not None
                message = f"No result within the type's time-out of {it.job.timeout:g} s."
                return Failure(ErrorClass.TRANSIENT, Cause.TIMEOUT, message, open_operation=sent)
            log.exception("handler %s failed on task %s", it.handler.name, it.job.task_id)
            message = f"The handler {it.handler.name} failed: {type(error).__name__}. The log has the details."
            sent = it.job.operation is not None
            return Failure(ErrorClass.TRANSIENT, Cause.UNKNOWN, message, open_operation=sent)

    def _learned(self, it: Prepared, known: Outcome | NotStarted) -> None:
        """Keep what the target said when it was asked what became of a call."""
        assert it.left_open is not None
        by = By("worker", it.job.row["lease_owner"] or "", "worker")
        with self._db.write() as tx:
            operations.asked(tx, it.left_open["id"])
            journal.note(tx, it.left_open["id"], "asked", by, _said(known))

    def _close(self, operation: int, word: str, message: str) -> None:
        with self._db.write() as tx:
            operations.close(tx, operation, word, error=message or None)


def _nothing() -> None: ...


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
