"""Not waiting for the next retry."""

from __future__ import annotations

from sqlalchemy import Connection

from board.db.clock import now
from board.tasks.history import By
from board.tasks.ledger import Ledger
from board.tasks.states import Move


def run_now(tx: Connection, ledger: Ledger, task: int, by: By, reason: str | None = None) -> None:
    """A retrying task becomes ready at once; its retry count stays. Raises IllegalMove elsewhere."""
    ledger.move(tx, ledger.lock(tx, task), Move.RUN_NOW, by, changes={"ready_at": now()}, note=reason)
