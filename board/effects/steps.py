"""How an outside program says what became of a call that it has announced. Repeats are harmless."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, update

from board.db.clock import now
from board.effects import journal
from board.effects.models import operations
from board.effects.operations import by_id
from board.tasks.history import By
from board.tasks.text import clean

To = Literal["sent", "confirmed", "rejected", "unknown"]
_FROM: dict[To, tuple[str, ...]] = {
    "sent": ("reserved",),
    "confirmed": ("reserved", "sent", "unknown"),
    "rejected": ("reserved", "sent", "unknown"),
    "unknown": ("reserved", "sent"),
}
MAX_ERROR = 1000  # characters of `last_error`: a sentence, not a page


@dataclass(frozen=True, slots=True)
class Step:
    """reference: the outside system's own number of what was done. message: why it was refused, what is unknown.

    execution_id: the run that says so, where it wants that to be checked.
    """

    to: To
    reference: str | None = None
    message: str | None = None
    execution_id: str | None = None


class NoSuchOperation(Exception):
    def __init__(self, operation_id: str) -> None:
        super().__init__(f"There is no operation “{operation_id[:40]}”.")


class NotYours(Exception):
    """Another program has announced this call, or the board itself."""

    def __init__(self, operation: RowMapping) -> None:
        whose = operation["owner"] or "the board itself"
        super().__init__(f"This operation belongs to {whose}; only that may say what became of it, or a person.")


class IllegalStep(Exception):
    """The operation does not stand where this step starts. operation: as it stands."""

    def __init__(self, operation: RowMapping, message: str) -> None:
        super().__init__(message)
        self.operation = operation


def take(tx: Connection, operation: int, step: Step, by: By) -> tuple[RowMapping, bool]:
    """Take the step; the operation as it stands then, and whether it stood so before.

    Raises NoSuchOperation, NotYours, IllegalStep, which its caller records.
    """
    stored = by_id(tx, operation, lock=True)
    if stored is None:
        raise NoSuchOperation(str(operation))
    if stored["owner"] != by.identity:
        raise NotYours(stored)
    if step.execution_id is not None and stored["execution_id"] not in (None, step.execution_id):
        raise IllegalStep(stored, f"Execution {stored['execution_id']} has reserved this operation since.")
    known = stored["external_reference"]
    if stored["status"] == step.to and (step.to != "confirmed" or step.reference in (None, known)):
        return stored, True
    late_number = stored["status"] == step.to == "confirmed" and known is None
    if stored["status"] not in _FROM[step.to] and not late_number:
        as_which = f" with the reference {known}" if stored["status"] == "confirmed" and known else ""
        raise IllegalStep(stored, f"This operation is {stored['status']}{as_which} and cannot become {step.to}.")
    values: dict[str, Any] = {"status": step.to}
    if step.to == "sent":
        values["sent_at"] = now()
    else:
        values |= {"closed_at": now(), "last_error": clean(step.message)[:MAX_ERROR] if step.message else None}
    if step.reference is not None:
        values["external_reference"] = clean(step.reference)
    changed = update(operations).where(operations.c.id == operation).values(values).returning(operations)
    row = tx.execute(changed).mappings().one()
    journal.note(tx, operation, step.to, by, step.message or _numbered(step.reference))
    return row, False


def _numbered(reference: str | None) -> str | None:
    return f"Its number there: {reference}" if reference else None
