"""What outside programs do in the world, announced through the ledger; fenced by the claims that they hold."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, select

from board.access.rights import Actor
from board.catalogue.store import Catalogue
from board.db.engine import Database
from board.effects import journal, outside, steps
from board.effects.outside import Announced, OtherContent, Reservation
from board.effects.steps import IllegalStep, Step
from board.tasks.history import record
from board.tasks.ids import BadTaskId, canonical
from board.tasks.intake import Problem
from board.tasks.ledger import Lease, Ledger, find
from board.tasks.states import Status
from board.worker.claims import ClaimLost, lost
from board.worker.models import claims

CHANNEL = "api"


@dataclass(frozen=True, slots=True)
class Wish:
    """What a program wants to do, as it says it."""

    key: str
    target: str
    request_hash: str
    task_id: str | None = None
    execution_id: str | None = None


class OutsideCalls:
    def __init__(self, db: Database, ledger: Ledger, catalogue: Catalogue) -> None:
        self._db, self._ledger, self._catalogue = db, ledger, catalogue

    def reserve(self, actor: Actor, wish: Wish) -> Reservation:
        """Reserve, or say what is recorded. Raises OtherContent (recorded), ClaimLost, Problem."""
        by = actor.by(CHANNEL)
        with self._db.write() as tx:
            task, token, harmless = self._held(tx, actor, wish.task_id)
            announced = Announced(
                wish.key, wish.target, wish.request_hash, by, wish.execution_id, task, token, harmless
            )
            try:
                return outside.reserve(tx, announced)
            except OtherContent as error:
                refused = error
            run = f" (execution {wish.execution_id})" if wish.execution_id else ""
            text = f"{by.identity}{run} wanted the key for another content, for {wish.target}; it was refused."
            journal.refused(tx, refused.operation["id"], by, text)
            if task is not None:
                about = {"operation": str(refused.operation["id"])}
                record(tx, task["id"], "operation_refused", by, note=str(refused), data=about)
        raise refused

    def step(self, actor: Actor, operation: int, step: Step) -> tuple[RowMapping, bool]:
        """Say how it went. Raises NoSuchOperation, NotYours, IllegalStep (recorded)."""
        by = actor.by(CHANNEL)
        with self._db.write() as tx:
            try:
                return steps.take(tx, operation, step, by)
            except IllegalStep as error:
                refused = error
            detail = step.reference or step.message
            text = f"{by.identity} said “{step.to}”{f' ({detail})' if detail else ''}, which came too late. {refused}"
            journal.refused(tx, operation, by, text)
        raise refused

    def _held(self, tx: Connection, actor: Actor, task_id: str | None) -> tuple[RowMapping | None, int, bool]:
        """The task, the lease token of the claim under which the call is made (0: none), and whether it is harmless.

        A program that has lost its claim of a task may do nothing more for it. One that never had any, such as a flow
        that a task's action has called, only says what its call is about.
        """
        if task_id is None:
            return None, 0, False
        try:
            found = find(tx, canonical(task_id))
        except BadTaskId as error:
            raise Problem("task_id", str(error), "invalid_field") from error
        if found is None:
            raise Problem("task_id", f"There is no task “{task_id[:200]}”.", "unknown_task")
        task = self._ledger.lock(tx, found["id"])
        query = select(claims).where(claims.c.task == task["id"], claims.c.owner == actor.identity)
        claim = tx.execute(query.order_by(claims.c.id.desc()).limit(1)).mappings().first()
        if claim is None or claim["settled_by"] == "completed":
            return task, 0, False
        lease = Lease(task["id"], claim["number"])
        if (gone := lost(tx, claim, task, lease)) is not None:
            raise gone
        if task["cancel_requested"]:
            raise ClaimLost(
                "cancelled", "Nothing is reserved: the task is to be cancelled. Stop, and release the claim."
            )
        assert task["status"] == Status.RUNNING
        spec = self._catalogue.version(tx, task["type"], task["type_version"]).spec
        return task, lease.token, spec.handler.side_effects is False
