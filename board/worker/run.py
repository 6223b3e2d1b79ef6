"""One attempt from claim to settlement: reconcile what was left, run the handler, hand over what it said."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping

from board import templating
from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue
from board.db.engine import AWAY, Database
from board.db.types import dump_json
from board.effects import journal, operations
from board.effects.callbacks import Documents
from board.effects.http import Doors
from board.logs import first_line
from board.ports import (
    Cause,
    ConnectionView,
    ErrorClass,
    Failure,
    Handler,
    NotStarted,
    Outcome,
    Refused,
    Stopped,
    Success,
    UnknownOutcome,
)
from board.tasks.history import By
from board.tasks.ledger import Lease, Ledger
from board.tasks.states import Phase
from board.tasks.view import data_of
from board.worker.ending import Ending
from board.worker.job import AttemptJob

log = logging.getLogger(__name__)

# A handler keeps its own time; this much later it is ended from outside, whatever it does.
GRACE_AFTER_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that an attempt needs, read in one go."""

    spec: TypeSpec
    handler: Handler
    job: AttemptJob
    left_open: RowMapping | None


class NotRunnable(Exception):
    """The attempt cannot even begin. left: a call of an earlier attempt that may still be going on."""

    def __init__(self, message: str, left: RowMapping | None) -> None:
        super().__init__(message)
        self.failure = Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, message, open_operation=left is not None)


class Runner:
    """Runs attempts of one worker process. watcher: gets progress and text as they come."""

    def __init__(
        self,
        db: Database,
        ledger: Ledger,
        catalogue: Catalogue,
        handlers: Mapping[str, Handler],
        documents: Documents,
        webhook_secret: str,
        watcher: Callable[[dict[str, Any]], None],
    ) -> None:
        self._db = db
        self._ending = Ending(db, ledger, catalogue)
        self._catalogue = catalogue
        self._handlers = handlers
        self._documents = documents
        self._secret = webhook_secret
        self._watcher = watcher

    async def run(self, row: RowMapping, worker: str, doors: Doors) -> None:
        """One attempt. Whatever happens inside, the task is settled, or left to the sweep when the lease is lost."""
        lease = Lease(row["id"], row["lease_token"])
        by = By("worker", worker, "worker")
        prepared: Prepared | None = None
        try:
            prepared = await asyncio.to_thread(self._prepare, row, lease, doors)
            outcome = await self._outcome(prepared)
        except NotRunnable as error:
            outcome = error.failure
        except Stopped:
            await _surely(self._ending.stopped, lease, by)
            return
        except asyncio.CancelledError:
            await _surely(self._ending.stopped, lease, by)
            raise
        except Exception as error:  # the database was away, or a secret cannot be opened
            if isinstance(error, AWAY):
                log.error("task %s could not be prepared: %s", row["task_id"], first_line(error))
            else:
                log.exception("task %s could not be prepared", row["task_id"])
            message = f"The attempt could not begin: {type(error).__name__}. The log has the details."
            outcome = Failure(ErrorClass.TRANSIENT, Cause.PRECONDITION, message)
        operation = prepared.job.operation if prepared else None
        may_resend = prepared is not None and prepared.job.may_resend
        await _surely(self._ending.settle, row, lease, by, outcome, operation, may_resend)

    # -- before ---------------------------------------------------------------------------------------------------

    def _prepare(self, row: RowMapping, lease: Lease, doors: Doors) -> Prepared:
        with self._db.read() as connection:
            spec = self._catalogue.version(connection, row["type"], row["type_version"]).spec
            data = data_of(connection, row["id"])
            acting = row["phase"] == Phase.ACT
            block: Any = spec.action if acting else spec.handler
            target = self._catalogue.open_connection(connection, block.connection) if block.connection else None
            left = operations.left_open(connection, row)
        handler = self._handlers.get(block.use)
        if handler is None:
            raise NotRunnable(f"No handler “{block.use}” is installed in this worker.", left)
        if block.connection and target is None:
            raise NotRunnable(f"The connection “{block.connection}” does not exist any more.", left)
        context = template_context(row, data)
        try:
            door = doors.to(target.url) if target else doors.common()
            inputs = data["payload"]
            if not acting and spec.handler.inputs is not None:
                inputs = templating.fill(spec.handler.inputs, context)
            key = operations.default_key(block.use, block.connection, row["task_id"], row["round"])
            if acting and spec.action and spec.action.operation_key:
                key = operations.own_key(templating.fill_strict(spec.action.operation_key, context))
        except (templating.TemplateProblem, Refused) as error:
            raise NotRunnable(str(error), left) from error
        job = AttemptJob(
            task_id=row["task_id"],
            type=row["type"],
            phase=row["phase"],
            priority=f"P{row['priority']}",
            round=row["round"],
            attempt=lease.token,
            user=operations.attempt_user(row["id"], lease.token),
            inputs=inputs,
            payload=data["payload"],
            options=block.options,
            connection=target,
            output_schema=spec.handler.output_schema,
            timeout=spec.handler.timeout,
            http=door,
            operation_key=key,
            content=dump_json([data["payload"], data["result"]]).encode() if acting else None,
            webhook_secret=self._secret,
            row=row,
            lease=lease,
            may_resend=_may_resend(spec, handler, target, acting),
            db=self._db,
            documents=self._documents,
            watcher=self._watcher,
            operation=left["id"] if left else None,
        )
        return Prepared(spec, handler, job, left)

    # -- during ---------------------------------------------------------------------------------------------------

    async def _outcome(self, it: Prepared) -> Outcome:
        limit = asyncio.timeout(it.job.timeout + GRACE_AFTER_TIMEOUT)
        try:
            async with limit:
                if it.left_open is not None:
                    known = await it.handler.reconcile(it.job, operations.as_sent(it.left_open))
                    await asyncio.to_thread(self._learned, it, known)
                    if isinstance(known, UnknownOutcome) and not it.job.may_resend:
                        return known
                    if not isinstance(known, NotStarted | UnknownOutcome):
                        return known
                    word = "rejected" if isinstance(known, NotStarted) else "unknown"
                    await asyncio.to_thread(self._close, it.left_open["id"], word, known.message)
                    it.job.operation = None
                return await it.handler.run(it.job)
        except Stopped:
            raise
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


def _said(known: Outcome | NotStarted) -> str:
    if isinstance(known, Success):
        return "It took effect." + (f" Its number there: {known.reference}" if known.reference else "")
    return known.message or "It never took effect."


def _asked_to_stop() -> bool:
    """Whether this attempt was cancelled, and not only something that its handler had begun."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _surely(work: Callable[..., None], *arguments: Any) -> None:
    """Run in a thread to its end, also when this attempt is cancelled meanwhile."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await running
        raise


def _may_resend(spec: TypeSpec, handler: Handler, target: ConnectionView | None, acting: bool) -> bool:
    if target is not None and target.options.get("idempotent"):
        return True
    if acting:
        return not handler.side_effects
    return not (handler.side_effects if spec.handler.side_effects is None else spec.handler.side_effects)


def template_context(row: RowMapping, data: RowMapping) -> dict[str, Any]:
    """What a type's templates see. The review's fields are always there and empty in round 1."""
    return {
        "task_id": row["task_id"],
        "type": row["type"],
        "title": row["title"],
        "source": row["source"],
        "payload": data["payload"],
        "tags": row["tags"],
        "priority": f"P{row['priority']}",
        "round": row["round"],
        "attempt": row["lease_token"],
        "callback": {"url": None},
        "review": {"instruction": data["instruction"] or "", "former_output": data["former_output"] or ""},
        "today": row["updated_at"].date().isoformat(),
        "now": row["updated_at"].isoformat(),
        "result": data["result"],
        "judgement": data["judgement"] or {},
        "decision": data["decision"] or {},
    }
