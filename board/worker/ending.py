"""Writes how an attempt ended: the task's move, the attempt's row and the fate of its operation, in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping
from sqlalchemy.exc import DataError, DBAPIError

from board.catalogue import store
from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue
from board.db.clock import now, read_now
from board.db.engine import Database
from board.effects import incoming, journal, open_calls, operations
from board.effects.operations import Delivered
from board.ports import Cause, ErrorClass, Failure, Outcome, Success, UnknownOutcome
from board.queue import spending
from board.queue.spending import Spent
from board.review import forms
from board.review.policy import Wish
from board.tasks.attempts import end_attempt
from board.tasks.history import By
from board.tasks.ledger import Lease, Ledger, Moved
from board.tasks.states import Move, Phase
from board.tasks.text import clean
from board.worker import asking
from board.worker.asking import OpenCall
from board.worker.settle import Decision, decide

log = logging.getLogger(__name__)

BACK_IN_LINE = (Move.RETRY, Move.RECONCILE, Move.PROCEED)
STOPPED = "The worker stopped."


@dataclass(slots=True)  # not frozen: made for every attempt, and that takes a third of the time
class Ended:
    """An attempt that is over.

    row: the task as it was claimed. outcome: what its handler said, or None when it was stopped from outside:
    cancelled, its lease lost, or the worker goes down and hands it back. operation: the id of what it has announced.
    may_resend: after an unknown outcome that may be sent again. tries: its calls, for the delivery log. awaited: its
    result may be handed in by callback. called: how often it has sent something.
    """

    row: RowMapping
    lease: Lease
    by: By
    outcome: Outcome | None
    operation: int | None = None
    may_resend: bool = False
    tries: Sequence[Delivered] = ()
    awaited: bool = False
    called: int = 0

    def spent(self, outcome: Outcome | None) -> list[Spent]:
        """What the attempt has spent on its type's work, whatever became of it; empty for most. outcome: as stored."""
        tokens = (outcome.tokens or 0) if isinstance(outcome, Success | Failure) else 0
        if self.row["phase"] != Phase.WORK or not (self.called or tokens):
            return []
        return [Spent(self.row["type"], self.called, tokens)]

    @property
    def in_doubt(self) -> bool:
        """Whether it must be looked up first what is known of its call: one that may still be going on, or whose result
        may have come."""
        failure = isinstance(self.outcome, Failure) and (self.outcome.open_operation or self.awaited)
        return failure or isinstance(self.outcome, UnknownOutcome)


class Ending:
    """zone: whose days are counted."""

    def __init__(self, db: Database, ledger: Ledger, catalogue: Catalogue, zone: str = "UTC") -> None:
        self._db, self._ledger, self._catalogue, self._zone = db, ledger, catalogue, zone

    def write(self, ended: Ended) -> None:
        """Write what follows from the outcome, or what became of an attempt that is too late."""
        if ended.outcome is None:
            # An operation that was sent stays open; who claims the task next asks about it first.
            with self._db.write() as tx:
                self.hand_back(tx, ended.lease, ended.by, STOPPED)
                operations.log_deliveries(tx, ended.tries)
                spending.add(tx, ended.spent(None), self._zone)
            return
        try:
            self._conclude(ended, ended.outcome)
        except Exception as error:
            if isinstance(error, DBAPIError) and not isinstance(error, DataError):
                raise  # the database is away, not the outcome wrong
            log.exception("the outcome of task %s cannot be stored", ended.row["task_id"])
            message = f"The handler's outcome cannot be stored: {type(error).__name__}. The log has the details."
            # What was announced may well have happened: then a person says how it went.
            sent = ended.operation is not None
            self._conclude(ended, Failure(ErrorClass.PERMANENT, Cause.BAD_OUTPUT, message, open_operation=sent))

    def _conclude(self, ended: Ended, outcome: Outcome) -> None:
        with self._db.write() as tx:
            if ended.in_doubt:
                outcome = self._called_back(tx, ended.lease) or outcome
            self.conclude(
                tx,
                ended.row,
                ended.lease,
                ended.by,
                outcome,
                operation=ended.operation,
                may_resend=ended.may_resend,
            )
            operations.log_deliveries(tx, ended.tries)
            spending.add(tx, ended.spent(outcome), self._zone)

    def conclude(
        self,
        tx: Connection,
        row: RowMapping,
        lease: Lease,
        by: By,
        outcome: Outcome,
        *,
        operation: int | None = None,
        may_resend: bool = False,
        review: Wish = "auto",
    ) -> Moved | None:
        """The same inside a transaction. None: the outcome does not count; the task was stopped, or the lease lost.

        review: what an outside worker wishes for with its success.
        """
        spec = self._catalogue.version(tx, row["type"], row["type_version"]).spec
        call = self._open_call(tx, spec, row, outcome, operation)
        decision = decide(spec, row, outcome, may_resend=may_resend, review=review, call=call)
        if operation is None and decision.move is Move.ASK_UNKNOWN and (left := open_calls.left_open(tx, row)):
            operation = left["id"]  # announced in the moment in which the attempt was cut
        late = "The attempt ended after the cancellation was asked; its result was refused."
        moved = self._write(tx, lease, by, decision, operation)
        if moved is None and not self._stop_if_asked(tx, lease, by, late):
            return None
        if operation is not None and decision.operation:
            operations.close(
                tx,
                operation,
                decision.operation,
                external_reference=clean(outcome.reference) if isinstance(outcome, Success) else None,
                error=decision.changes["last_error"],
            )
            if decision.operation == "unknown":
                journal.note(tx, operation, "unknown", by, decision.changes["last_error"])
        return moved

    def _called_back(self, tx: Connection, lease: Lease) -> Outcome | None:
        """A callback that was confirmed to whoever called, in the moment in which the attempt gave up waiting, counts.

        Looked for under the task's lock: what comes after that is told that it is late.
        """
        self._ledger.lock(tx, lease.task)
        called = incoming.answers(tx, [lease.task]).get(lease.task)
        return None if called is None else called.outcome()

    @staticmethod
    def _open_call(
        tx: Connection, spec: TypeSpec, row: RowMapping, outcome: Outcome, operation: int | None
    ) -> OpenCall | None:
        """The call that may still be going on, where the outcome says so."""
        if operation is None or not isinstance(outcome, Failure) or not outcome.open_operation:
            return None
        stored = operations.by_id(tx, operation)
        if stored is None or stored["sent_at"] is None:
            return None
        options = store.connection_options(tx, stored["connection"]) if stored["connection"] else {}
        usual = asking.usual_limit(spec.handler.timeout, row["max_retries"])
        # The time in which a person had the form does not count.
        since = max(stored["sent_at"], forms.left_at(tx, row["id"]) or stored["sent_at"])
        age = (read_now(tx) - since).total_seconds()
        return OpenCall(stored["asks"], age, options.get("reconcile_for", usual))

    def _write(self, tx: Connection, lease: Lease, by: By, decision: Decision, operation: int | None) -> Moved | None:
        changes = decision.changes | ({"ready_at": now(decision.wait)} if decision.move in BACK_IN_LINE else {})
        asked = {"operation": operation} if decision.move is Move.ASK_UNKNOWN else {}
        moved = self._ledger.settle(
            tx,
            lease,
            decision.move,
            by,
            changes=changes,
            data=decision.data,
            note=decision.note,
            details=(decision.details | asked) or None,
        )
        if moved is not None:
            end_attempt(tx, lease, decision.attempt)
        return moved

    def hand_back(self, tx: Connection, lease: Lease, by: By, note: str) -> Moved | None:
        """Back in line without a retry spent. None: the task was stopped as was asked, or the lease is lost."""
        if self._stop_if_asked(tx, lease, by):
            return None
        moved = self._ledger.settle(tx, lease, Move.HAND_BACK, by, changes={"ready_at": now()}, note=note)
        if moved is None:
            log.warning("the lease of task row %d was lost; attempt %d was stopped", lease.task, lease.token)
        else:
            end_attempt(tx, lease, {"outcome": "handed_back"})
        return moved

    def _stop_if_asked(self, tx: Connection, lease: Lease, by: By, note: str | None = None) -> bool:
        if not self._ledger.cancelling(tx, lease):
            return False
        if self._ledger.settle(tx, lease, Move.STOP, by, changes={"cancel_requested": False}, note=note) is None:
            return False
        end_attempt(tx, lease, {"outcome": "cancelled"})
        return True
