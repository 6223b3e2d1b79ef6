"""The way back of a task that failed or was cancelled."""

from __future__ import annotations

from typing import Any, Literal

from sqlalchemy import Connection

from board.catalogue.store import Catalogue
from board.db.clock import now
from board.tasks.history import By
from board.tasks.ledger import Ledger
from board.tasks.states import IllegalMove, Move, Phase, Status


def requeue(
    tx: Connection,
    ledger: Ledger,
    catalogue: Catalogue,
    task: int,
    by: By,
    *,
    reason: str | None = None,
    from_work: bool = False,
    type_version: Literal["current", "original"] = "current",
) -> None:
    """Put a failed or cancelled task back in the phase it had, with a fresh retry budget. Raises IllegalMove elsewhere.

    What was approved and has no action to do becomes done as soon as the timer comes by.
    """
    row = ledger.lock(tx, task)
    if Status(row["status"]) not in (Status.FAILED, Status.CANCELLED):
        raise IllegalMove(Move.REQUEUE, Status(row["status"]), row["phase"])
    if type_version == "current":
        loaded = catalogue.current(tx, row["type"])
    else:
        loaded = catalogue.version(tx, row["type"], row["type_version"])
    changes: dict[str, Any] = {
        "ready_at": now(),
        "retry_count": 0,
        "crash_count": 0,
        "suspect": False,
        "cancel_requested": False,
        "acknowledged_at": None,
        "type_version": loaded.version,
        "home_pool": catalogue.pool(loaded.spec),
        "lane": row["priority"],
        "lane_since": now(),
        "has_action": row["phase"] == Phase.ACT and not from_work and loaded.spec.action is not None,
    }
    ledger.move(tx, row, Move.REQUEUE_WORK if from_work else Move.REQUEUE, by, changes=changes, note=reason)
