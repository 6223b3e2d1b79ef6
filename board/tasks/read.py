"""Finding tasks: one by its ID, many by filters, in any of a few orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Text, false, func, or_, select, type_coerce

from board.db.pages import DEFAULT_LIMIT, Key, Page, after, page
from board.db.types import dump_json
from board.tasks.ids import BadTaskId, canonical
from board.tasks.models import attempts, tasks
from board.tasks.states import Status
from board.tasks.view import time

SORTS: dict[str, ColumnElement[Any]] = {
    "created_at": tasks.c.created_at,
    "updated_at": tasks.c.updated_at,
    "priority": tasks.c.priority,
    "status": tasks.c.status,
    "type": tasks.c.type,
    "title": tasks.c.title,
    "task_id": tasks.c.task_id,
}
DEFAULT_SORT = "-created_at"
MAX_SORTS = 3


class BadFilter(ValueError):
    """field: the filter that is wrong; the text says what it may be."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Filters:
    """None or empty: any. task_id: in any writing. requester: only tasks put in by this identity."""

    status: tuple[str, ...] = ()
    type: tuple[str, ...] = ()
    priority: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    q: str | None = None
    task_id: str | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    requester: str | None = None


def list_tasks(
    connection: Connection,
    filters: Filters,
    *,
    sort: str | None = None,
    cursor: str | None = None,
    limit: int = DEFAULT_LIMIT,
) -> Page:
    """One page of task rows. sort: up to three of SORTS, comma separated, `-` for descending. Raises BadFilter."""
    keys = _keys(sort or DEFAULT_SORT)
    statement = after(select(tasks).where(*_conditions(filters)), keys, cursor, limit)
    return page(connection.execute(statement).mappings().all(), keys, limit)


def by_internal_id(connection: Connection, task: int) -> RowMapping:
    return connection.execute(select(tasks).where(tasks.c.id == task)).mappings().one()


def by_internal_ids(connection: Connection, ids: Sequence[int]) -> dict[int, RowMapping]:
    """Many at once, for lists."""
    found = connection.execute(select(tasks).where(tasks.c.id.in_(ids))).mappings()
    return {row["id"]: row for row in found}


def progress_of(connection: Connection, task: int, attempt: int) -> dict[str, Any] | None:
    """What an outside worker has last said in an attempt: percent, message, text, offset, at."""
    query = select(attempts.c.progress).where(attempts.c.task == task, attempts.c.number == attempt)
    said: dict[str, Any] | None = connection.execute(query).scalar()
    return said


def attempts_of(connection: Connection, task: int) -> list[RowMapping]:
    """Every claim of a task, oldest first."""
    query = select(attempts).where(attempts.c.task == task).order_by(attempts.c.number)
    return list(connection.execute(query).mappings())


def attempt_document(row: RowMapping) -> dict[str, Any]:
    return {
        "attempt": row["number"],
        "phase": row["phase"],
        "round": row["round"],
        "worker": row["worker"],
        "type_version": row["type_version"],
        "started_at": time(row["started_at"]),
        "finished_at": time(row["finished_at"]),
        "outcome": row["outcome"],
        "error_class": row["error_class"],
        "error_cause": row["error_cause"],
        "last_error": row["error"],
        "rule": row["rule"],
        "output": row["output"],
        "raw_text": row["raw_text"],
        "tokens": row["tokens"],
        "cost": row["cost"],
        "external_reference": row["reference"],
        "progress": row["progress"],
    }


def _keys(sort: str) -> list[Key]:
    keys: list[Key] = []
    for part in filter(None, (item.strip() for item in sort.split(","))):
        name = part.removeprefix("-")
        if name not in SORTS:
            raise BadFilter("sort", f"“{name}” cannot be sorted by; use {', '.join(SORTS)}, with - for descending.")
        keys.append(Key(SORTS[name], name, part.startswith("-")))
    if not 1 <= len(keys) <= MAX_SORTS:
        raise BadFilter("sort", f"Sort by one to {MAX_SORTS} fields.")
    return [*keys, Key(tasks.c.id, "id", keys[0].descending)]


def _conditions(filters: Filters) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    for status in filters.status:
        if status not in list(Status):
            raise BadFilter("status", f"“{status}” is no status; there are: {', '.join(Status)}.")
    for priority in filters.priority:
        if priority not in ("P0", "P1", "P2", "P3"):
            raise BadFilter("priority", f"“{priority}” is no priority; there are P0, P1, P2 and P3.")
    if filters.status:
        found.append(tasks.c.status.in_(filters.status))
    if filters.type:
        found.append(tasks.c.type.in_(filters.type))
    if filters.priority:
        found.append(tasks.c.priority.in_([int(item[1]) for item in filters.priority]))
    if filters.source:
        found.append(tasks.c.source.in_(filters.source))
    if filters.tag:  # tags are stored as a JSON list of texts
        stored = type_coerce(tasks.c.tags, Text())
        found.append(or_(*(func.strpos(stored, dump_json(tag)) > 0 for tag in filters.tag)))
    if filters.q:
        text = filters.q.strip().lower()
        found.append(
            or_(
                func.lower(tasks.c.title).contains(text, autoescape=True),
                func.lower(tasks.c.task_id).contains(text, autoescape=True),
            )
        )
    if filters.task_id is not None:
        try:
            found.append(tasks.c.task_id == canonical(filters.task_id))
        except BadTaskId:
            found.append(false())
    if filters.created_from is not None:
        found.append(tasks.c.created_at >= filters.created_from)
    if filters.created_to is not None:
        found.append(tasks.c.created_at < filters.created_to)
    if filters.requester is not None:
        found.append(tasks.c.requester == filters.requester)
    return found
