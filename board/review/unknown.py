"""What follows when a person says what became of a call of unknown outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, RowMapping, update

from board.catalogue.spec import TypeSpec
from board.db.clock import now
from board.effects import journal, operations
from board.effects.models import operations as operation_table
from board.tasks.history import By
from board.tasks.ledger import Ledger
from board.tasks.states import Move, Phase

if TYPE_CHECKING:
    from board.review.decide import Verdict

# How the operation is closed.
STATUS = {"happened": "confirmed", "not_happened": "rejected", "drop": "rejected"}


def close_as_said(tx: Connection, stored: RowMapping, verdict: Verdict, by: By) -> None:
    """Close the operation as a person says it went, with the reason."""
    status = STATUS[verdict.verdict]
    note = None if status == "confirmed" else f"A person said: {verdict.verdict.replace('_', ' ')}."
    operations.close(tx, stored["id"], status, external_reference=verdict.reference, error=note)
    said = update(operation_table).where(operation_table.c.id == stored["id"])
    tx.execute(said.values(resolution=verdict.verdict))
    data = {"outcome": verdict.verdict, "external_reference": verdict.reference}
    journal.note(tx, stored["id"], "resolved", by, verdict.reason, data)


def answer(
    tx: Connection,
    ledger: Ledger,
    task: RowMapping,
    review: RowMapping,
    verdict: Verdict,
    by: By,
    spec: TypeSpec,
    details: dict[str, Any],
) -> None:
    """The move that follows from a person's word about an unknown outcome; its operation is closed with it."""
    if review["operation"] is not None and (stored := operations.by_id(tx, review["operation"])) is not None:
        close_as_said(tx, stored, verdict, by)
    in_work = task["phase"] == Phase.WORK
    changes: dict[str, Any] = {"ready_at": now(), "retry_count": 0}
    data: dict[str, Any] = {} if verdict.result is None else {"result": verdict.result}
    another_did_not = bool((review["data"] or {}).get("again"))
    if verdict.verdict == "happened" and not another_did_not:
        move = Move.HAPPENED_GO_ON if in_work and spec.action is not None else Move.HAPPENED
        changes |= {"last_error": None, "error_class": None, "error_cause": None}  # it went well after all
        changes["has_action"] = move is Move.HAPPENED_GO_ON
    else:
        move = Move.DROP if verdict.verdict == "drop" else Move.SEND_AGAIN
    ledger.move(tx, task, move, by, changes=changes, data=data, note=verdict.reason, details=details)
