"""A task as it goes over the wire: in API answers, callbacks and actions. The names are the contract's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, RowMapping, Select, select

from board.db.many import among, listed
from board.tasks.models import task_data
from board.tasks.states import Status

EMPTY_JUDGEMENT: dict[str, Any] = {
    "summary": None,
    "advice": None,
    "verdict": None,
    "confidence": None,
    "reasons": [],
    "risks": [],
}


def data_of(connection: Connection, task: int) -> RowMapping:
    return connection.execute(select(task_data).where(task_data.c.task == task)).mappings().one()


def data_of_many(connection: Connection, ids: Sequence[int]) -> dict[int, RowMapping]:
    dialect = connection.dialect.name
    found = connection.execute(_data_of_many(dialect), listed(dialect, ids))
    return {row["task"]: row for row in found.mappings().all()}


@lru_cache(maxsize=2)
def _data_of_many(dialect: str) -> Select[Any]:
    return select(task_data).where(among(dialect, task_data.c.task))


def documents(
    connection: Connection,
    rows: Sequence[RowMapping],
    *,
    public_url: str,
    reviews: dict[int, dict[str, Any]] | None = None,
    waiting: Mapping[int, dict[str, Any]] | None = None,
    owners: Mapping[int, str | None] | None = None,
) -> list[dict[str, Any]]:
    """Task objects for rows of `tasks`.

    reviews: the open review, waiting: what it waits for, owners: whom its type names, all by internal id and in their
    wire form.
    """
    if not rows:
        return []
    data = data_of_many(connection, [row["id"] for row in rows])
    reviews, waiting, owners = reviews or {}, waiting or {}, owners or {}
    return [
        _document(
            row, data[row["id"]], public_url, reviews.get(row["id"]), waiting.get(row["id"]), owners.get(row["id"])
        )
        for row in rows
    ]


def _document(
    row: RowMapping,
    data: RowMapping,
    public_url: str,
    review: dict[str, Any] | None,
    waiting: dict[str, Any] | None,
    owner: str | None,
) -> dict[str, Any]:
    path = quote(row["task_id"], safe="")
    status = Status(row["status"])
    return {
        "task_id": row["task_id"],
        "type": row["type"],
        "title": row["title"],
        "status": status,
        "phase": row["phase"],
        "priority": f"P{row['priority']}",
        "lane": f"P{row['lane']}",
        "source": row["source"],
        "origin": data["origin"],
        "tags": row["tags"],
        "fields": {},
        "note": data["note"],
        "payload": data["payload"],
        "result": data["result"],
        "judgement": EMPTY_JUDGEMENT | (data["judgement"] or {}),
        "callback_url": row["callback_url"],
        "retry_count": row["retry_count"],
        "max_retries": row["max_retries"],
        "next_retry_at": time(row["ready_at"]) if status is Status.RETRYING else None,
        "last_error": row["last_error"],
        "error_class": row["error_class"],
        "error_cause": row["error_cause"],
        "crash_count": row["crash_count"],
        "round": row["round"],
        "review": review,
        "decision": data["decision"],
        "flow_id": None,
        "needs": [],
        "assignee": row["assignee"],
        "owner": owner,
        "requester": row["requester"],
        "due_at": time(row["due_at"]),
        "deadline_at": time(row["deadline_at"]),
        "deadline_missed": row["deadline_missed"],
        "run_after": time(row["run_after"]),
        "cancel_requested": row["cancel_requested"],
        "created_at": time(row["created_at"]),
        "started_at": time(row["started_at"]),
        "finished_at": time(row["finished_at"]),
        "updated_at": time(row["updated_at"]),
        "acknowledged_at": time(row["acknowledged_at"]),
        "version": row["version"],
        "type_version": row["type_version"],
        "waiting_for": waiting,
        "links": {
            "self": f"{public_url}/api/v1/tasks/{path}",
            "ui": f"{public_url}/tasks/{path}",
            "events": f"{public_url}/api/v1/tasks/{path}/events",
            "stream": f"{public_url}/api/v1/tasks/{path}/stream",
        },
    }


def event_document(row: RowMapping) -> dict[str, Any]:
    return {
        "id": str(row["id"]),
        "seq": row["seq"],
        "at": time(row["at"]),
        "kind": row["kind"],
        "from": row["from_status"],
        "to": row["to_status"],
        "actor": {"kind": row["actor_kind"], "name": row["actor_name"]},
        "channel": row["channel"],
        "attempt": row["attempt"],
        "note": row["note"],
        "data": row["data"],
    }


def time(moment: datetime | None) -> str | None:
    """RFC 3339 in UTC, or None."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
