"""An operation as it goes over the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping

from board.effects.outside import is_left_open
from board.tasks.view import time


def operation_document(row: RowMapping, moment: datetime) -> dict[str, Any]:
    """moment: the present time, to tell what an outside program has left open for long."""
    return {
        "id": str(row["id"]),
        "key": row["key"],
        "task_id": row["task_id"],
        "kind": row["kind"],
        "target": row["target"],
        "status": row["status"],
        "external_reference": row["external_reference"],
        "tries": row["tries"],
        "asks": row["asks"],
        "last_error": row["last_error"],
        "owner": row["owner"],
        "execution_id": row["execution_id"],
        "left_open": is_left_open(row, moment),
        "resolution": row["resolution"],
        "next_try_at": time(row["next_try_at"]) if row["status"] in ("reserved", "sent") and not row["after"] else None,
        "after": str(row["after"]) if row["after"] else None,  # the callback that must be closed before it
        "created_at": time(row["created_at"]),
        "sent_at": time(row["sent_at"]),
        "closed_at": time(row["closed_at"]),
    }


def entry_document(row: RowMapping) -> dict[str, Any]:
    """One thing that became known of an operation."""
    return {
        "at": time(row["at"]),
        "kind": row["kind"],
        "actor": {"kind": row["actor_kind"], "name": row["actor_name"]},
        "channel": row["channel"],
        "note": row["note"],
        "data": row["data"],
    }


def try_document(row: RowMapping) -> dict[str, Any]:
    """One try and what came back."""
    return {
        "at": time(row["at"]),
        "milliseconds": row["milliseconds"],
        "http_status": row["http_status"],
        "outcome": row["outcome"],
        "detail": row["detail"],
    }
