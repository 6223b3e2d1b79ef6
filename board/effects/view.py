"""An operation as it goes over the wire."""

from __future__ import annotations

from typing import Any

from sqlalchemy import RowMapping

from board.tasks.view import time


def operation_document(row: RowMapping) -> dict[str, Any]:
    return {
        "id": str(row["id"]),
        "key": row["key"],
        "task_id": row["task_id"],
        "kind": row["kind"],
        "target": row["target"],
        "status": row["status"],
        "external_reference": row["external_reference"],
        "tries": row["tries"],
        "last_error": row["last_error"],
        "next_try_at": time(row["next_try_at"]) if row["status"] in ("reserved", "sent") else None,
        "created_at": time(row["created_at"]),
        "sent_at": time(row["sent_at"]),
        "closed_at": time(row["closed_at"]),
    }
