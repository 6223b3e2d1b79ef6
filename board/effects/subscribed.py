"""Subscriptions as people and programs see them, each with its last result."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, RowMapping, func, select

from board.db.clock import read_now
from board.effects.listing import tries
from board.effects.models import SUBSCRIBED, operations
from board.effects.operations import OPEN
from board.effects.view import operation_document, try_document
from board.tasks.view import time


def document(connection: Connection, row: RowMapping) -> dict[str, Any]:
    """A subscription of the contract. waiting: events on their way; given_up: those that never arrived; last: the
    latest event that has arrived or was given up, `trying`: the first one on its way that was tried before, each with
    its last try. Found by ix_operations_subscription, however many events there were."""
    counts = {status: _count(connection, row["id"], status) for status in (*OPEN, "rejected")}
    ended = [found for status in ("confirmed", "rejected") if (found := _end(connection, row["id"], status))]
    return {
        "id": row["id"],
        "url": row["url"],
        "events": row["events"],
        "types": row["types"],
        "has_secret": bool(row["secret"]),
        "owner": row["owner"],
        "created_at": time(row["created_at"]),
        "status": "disabled" if row["disabled_at"] else "active",
        "disabled_at": time(row["disabled_at"]),
        "note": row["note"],
        "waiting": sum(counts[status] for status in OPEN),
        "given_up": counts["rejected"],
        "last": _shown(connection, max(ended, key=lambda it: it["closed_at"], default=None)),
        "trying": _shown(connection, _tried(connection, row["id"])),
    }


def _count(connection: Connection, subscription: str, status: str) -> int:
    query = select(func.count()).where(SUBSCRIBED, operations.c.subscription == subscription)
    return int(connection.execute(query.where(operations.c.status == status)).scalar_one())


def _end(connection: Connection, subscription: str, status: str) -> RowMapping | None:
    """The latest that ended so."""
    query = select(operations).where(
        SUBSCRIBED, operations.c.subscription == subscription, operations.c.status == status
    )
    return connection.execute(query.order_by(operations.c.id.desc()).limit(1)).mappings().first()


def _tried(connection: Connection, subscription: str) -> RowMapping | None:
    """The oldest that was sent, and not taken yet."""
    query = select(operations).where(
        SUBSCRIBED, operations.c.subscription == subscription, operations.c.status == "sent"
    )
    return connection.execute(query.order_by(operations.c.id).limit(1)).mappings().first()


def _shown(connection: Connection, row: RowMapping | None) -> dict[str, Any] | None:
    if row is None:
        return None
    shown = operation_document(row, read_now(connection))
    keys = ("id", "task_id", "status", "tries", "last_error", "next_try_at", "created_at", "closed_at")
    last = next(iter(tries(connection, row["id"])), None)
    event = row["key"].split(":", 3)[2]
    return {"event": event, **{key: shown[key] for key in keys}, "try": try_document(last) if last else None}
