"""A failed task stays on the board until somebody says that it was seen."""

from __future__ import annotations

from sqlalchemy import Connection

from board.db.clock import now
from board.tasks.history import By
from board.tasks.ledger import Ledger
from board.tasks.states import IllegalMove, Status


def acknowledge(tx: Connection, ledger: Ledger, task: int, by: By, reason: str | None = None) -> None:
    """Let a failed task be archived after its retention. A repeat changes nothing. Raises IllegalMove elsewhere.

    A requeue takes it back: should the task fail again, that is a failure which nobody has seen.
    """
    row = ledger.lock(tx, task)
    if row["status"] != Status.FAILED:
        raise IllegalMove("acknowledge", Status(row["status"]), row["phase"])
    if row["acknowledged_at"] is None:
        ledger.edit(
            tx, row, by, changes={"acknowledged_at": now()}, data={}, details=None, kind="acknowledged", note=reason
        )
