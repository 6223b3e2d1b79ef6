"""One attempt from claim to settlement: reconcile what an earlier attempt left, run the handler, write what follows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping, update

from board import templating
from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue
from board.db.clock import now
from board.db.engine import Database
from board.effects import operations
from board.effects.callbacks import Documents
from board.effects.http import Doors
from board.ports import (
    Cause,
    ConnectionView,
    ErrorClass,
    Failure,
    Handler,
    NotStarted,
    Outcome,
    Stopped,
    Success,
    UnknownOutcome,
)
from board.tasks.history import By
from board.tasks.ledger import Lease, Ledger, Moved
from board.tasks.models import attempts
from board.tasks.states import Move, Phase
from board.tasks.view import data_of
from board.worker.job import AttemptJob
from board.worker.settle import Decision, decide

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
    """The attempt cannot even begin; the failure says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


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
        self._ledger = ledger
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
            outcome = None
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.to_thread(self._stopped, lease, by, prepared))
            raise
        await asyncio.shield(asyncio.to_thread(self._settle, row, lease, by, prepared, outcome))

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
            raise NotRunnable(_precondition(f"No handler “{block.use}” is installed in this worker."))
        if block.connection and target is None:
            raise NotRunnable(_precondition(f"The connection “{block.connection}” does not exist any more."))
        context = _context(row, data)
        try:
            inputs = data["payload"]
            if not acting and spec.handler.inputs is not None:
                inputs = templating.fill(spec.handler.inputs, context)
            key = operations.default_key(block.use, block.connection, row["task_id"], row["round"])
            if acting and spec.action and spec.action.operation_key:
                key = templating.fill_strict(spec.action.operation_key, context)
        except templating.TemplateProblem as error:
            raise NotRunnable(_precondition(str(error))) from error
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
            http=doors.to(target.url) if target else doors.common(),
            operation_key=key,
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
        try:
            async with asyncio.timeout(it.job.timeout + GRACE_AFTER_TIMEOUT):
                if it.left_open is not None:
                    known = await it.handler.reconcile(it.job, operations.as_sent(it.left_open))
                    if isinstance(known, UnknownOutcome) and not it.job.may_resend:
                        return known
                    if not isinstance(known, NotStarted | UnknownOutcome):
                        return known
                    word = "rejected" if isinstance(known, NotStarted) else "unknown"
                    await asyncio.to_thread(self._close, it.left_open["id"], word, known.message)
                    it.job.operation = None
                return await it.handler.run(it.job)
        except TimeoutError:
            sent = it.job.operation is not None
            message = f"No result within the type's time-out of {it.job.timeout:g} s."
            return Failure(ErrorClass.TRANSIENT, Cause.TIMEOUT, message, open_operation=sent)
        except (Stopped, asyncio.CancelledError):
            raise
        except Exception as error:
            log.exception("handler %s failed on task %s", it.handler.name, it.job.task_id)
            message = f"The handler {it.handler.name} failed: {type(error).__name__}. The log has the details."
            sent = it.job.operation is not None
            return Failure(ErrorClass.TRANSIENT, Cause.UNKNOWN, message, open_operation=sent)

    # -- after ----------------------------------------------------------------------------------------------------

    def _settle(
        self, row: RowMapping, lease: Lease, by: By, prepared: Prepared | None, outcome: Outcome | None
    ) -> None:
        if outcome is None:
            self._stopped(lease, by, prepared)
            return
        with self._db.write() as tx:
            spec = self._catalogue.version(tx, row["type"], row["type_version"]).spec
            resend = prepared.job.may_resend if prepared else False
            decision = decide(spec, row, outcome, may_resend=resend)
            operation = prepared.job.operation if prepared else None
            if self._write(tx, lease, by, decision, operation) is None:
                self._stop_if_asked(tx, lease, by)
            elif operation is not None and decision.operation:
                reference = outcome.reference if isinstance(outcome, Success) else None
                operations.close(
                    tx,
                    operation,
                    decision.operation,
                    external_reference=reference,
                    error=decision.changes["last_error"],
                )

    def _write(self, tx: Any, lease: Lease, by: By, decision: Decision, operation: int | None) -> Moved | None:
        changes = decision.changes | ({"ready_at": now(decision.wait)} if decision.move in _BACK_IN_LINE else {})
        details = decision.details
        if decision.move in (Move.ASK, Move.ASK_UNKNOWN):
            details = details | {"operation": operation}
        moved = self._ledger.settle(
            tx,
            lease,
            decision.move,
            by,
            changes=changes,
            data=decision.data,
            note=decision.note,
            details=details or None,
        )
        if moved is not None:
            tx.execute(
                update(attempts)
                .where(attempts.c.task == lease.task, attempts.c.number == lease.token)
                .values(finished_at=now(), **decision.attempt)
            )
        return moved

    def _stopped(self, lease: Lease, by: By, prepared: Prepared | None) -> None:
        """The attempt was ended from outside: cancelled, or the worker is going down and hands the task back.

        An operation that was sent stays open; who claims the task next asks about it first.
        """
        with self._db.write() as tx:
            if self._stop_if_asked(tx, lease, by):
                return
            self._ledger.settle(tx, lease, Move.HAND_BACK, by, changes={"ready_at": now()}, note="The worker stopped.")
            tx.execute(
                update(attempts)
                .where(attempts.c.task == lease.task, attempts.c.number == lease.token)
                .values(finished_at=now(), outcome="handed_back")
            )

    def _stop_if_asked(self, tx: Any, lease: Lease, by: By) -> bool:
        if not self._ledger.cancelling(tx, lease):
            return False
        self._ledger.settle(tx, lease, Move.STOP, by, changes={"cancel_requested": False})
        tx.execute(
            update(attempts)
            .where(attempts.c.task == lease.task, attempts.c.number == lease.token)
            .values(finished_at=now(), outcome="cancelled")
        )
        return True

    def _close(self, operation: int, word: str, message: str) -> None:
        with self._db.write() as tx:
            operations.close(tx, operation, word, error=message or None)


_BACK_IN_LINE = (Move.RETRY, Move.PROCEED)


def _may_resend(spec: TypeSpec, handler: Handler, target: ConnectionView | None, acting: bool) -> bool:
    if target is not None and target.options.get("idempotent"):
        return True
    if acting:
        return not handler.side_effects
    return not (handler.side_effects if spec.handler.side_effects is None else spec.handler.side_effects)


def _context(row: RowMapping, data: RowMapping) -> dict[str, Any]:
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


def _precondition(message: str) -> Failure:
    return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, message)
