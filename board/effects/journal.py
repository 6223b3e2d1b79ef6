"""What became known of an operation beside its tries: who announced it, asked about it, was refused, answered for it.

Only ever added to. A try that simply works leaves nothing here: its row in `operations` says all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, func, insert, select

from board.db.clock import now
from board.effects.models import operation_events
from board.tasks.history import By
from board.tasks.text import clean

Kind = Literal["reserved", "sent", "confirmed", "rejected", "unknown", "asked", "refused", "resolved", "withdrawn"]
MAX_NOTE = 1000  # characters: a sentence, or the beginning of an answer
# One program that is refused in a loop must not fill the database.
MOST_REFUSALS = 20


def note(
    tx: Connection, operation: int, kind: Kind, by: By, text: str | None = None, data: dict[str, Any] | None = None
) -> None:
    """Add one entry. text: a sentence for people; a person's reason where he resolved it."""
    tx.execute(
        insert(operation_events).values(
            operation=operation,
            at=now(),
            kind=kind,
            actor_kind=by.kind,
            actor_name=by.name,
            channel=by.channel,
            note=clean(text)[:MAX_NOTE] if text else None,
            data=data,
        )
    )


def refused(tx: Connection, operation: int, by: By, text: str) -> None:
    """Somebody wanted to use the key for something else. Kept at most MOST_REFUSALS times an operation."""
    count = select(func.count()).where(operation_events.c.operation == operation, operation_events.c.kind == "refused")
    if tx.execute(count).scalar_one() < MOST_REFUSALS:
        note(tx, operation, "refused", by, text)


def entries(connection: Connection, operation: int) -> Sequence[RowMapping]:
    """Everything that is kept of an operation, oldest first."""
    query = select(operation_events).where(operation_events.c.operation == operation).order_by(operation_events.c.id)
    return connection.execute(query).mappings().all()
