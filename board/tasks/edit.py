"""Changing a task's fields without moving it; the payload only where somebody may still act on it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, RowMapping

from board.catalogue.store import Catalogue
from board.db.clock import read_now
from board.files.references import references
from board.tasks.bodies import Moment, Tag, Text
from board.tasks.content import FileDesk, Problem, check_files, key_of, payload_hash, payload_problem
from board.tasks.history import By
from board.tasks.ledger import Ledger, Stale
from board.tasks.states import Phase, Status
from board.tasks.view import data_of, time

# A running task's handler has the payload already; a done one is history.
PAYLOAD_OPEN = frozenset({Status.PENDING, Status.NEEDS_REVIEW, Status.FAILED})


# Columns that follow from what was changed.
_UNSEEN = ("lane", "lane_since", "ready_at", "payload_hash", "phase", "limit_key", "held_by", "let_in")


class TaskEdit(BaseModel):
    """The body of PATCH /tasks/{id}. Only what is given is changed; version is the one that was read."""

    model_config = ConfigDict(extra="forbid")

    version: int
    title: Text | None = None
    priority: Literal["P0", "P1", "P2", "P3"] | None = None
    tags: list[Tag] | None = Field(default=None, max_length=50)
    note: Annotated[str, Field(max_length=10_000)] | None = None
    due_at: Moment | None = None
    assignee: Annotated[str, Field(max_length=200)] | None = None
    run_after: Moment | None = None
    payload: dict[str, Any] | None = None
    fields: Any = None


def apply(
    tx: Connection,
    ledger: Ledger,
    catalogue: Catalogue,
    files: FileDesk,
    seen: Callable[[Connection, RowMapping, Collection[str]], None],
    task: int,
    edit: TaskEdit,
    by: By,
) -> None:
    """Write what changed and one event with before and after. Raises Stale, Problem.

    seen: called with the names of what has been changed, when a reviewer may be looking at it.
    """
    row = ledger.lock(tx, task)
    if row["version"] != edit.version:
        raise Stale
    given = edit.model_dump(exclude_unset=True, exclude={"version"})
    if given.pop("fields", None) is not None:
        raise Problem("fields", "fields is not yet supported; leave it out.", "not_supported")
    stored = data_of(tx, task)
    changes, data = _columns(tx, catalogue, row, given)
    if "payload" in data:
        check_files(tx, files, data["payload"])
        files.use(tx, task, [file_id for _, file_id in references(data["payload"])])
    details = {
        name: {"from": _plain(name, row[name] if name in row else stored[name]), "to": _plain(name, value)}
        for name, value in (changes | data).items()
        if name not in _UNSEEN and (row[name] if name in row else stored[name]) != value
    }
    if not details:
        return
    edited = ledger.edit(tx, row, by, changes=changes, data=data, details=details)
    if row["status"] == Status.NEEDS_REVIEW:
        seen(tx, edited, list(details))


def _columns(
    tx: Connection, catalogue: Catalogue, row: RowMapping, given: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    changes: dict[str, Any] = {}
    data: dict[str, Any] = {}
    moment = read_now(tx)
    for name, value in given.items():
        match name:
            case "title":
                changes["title"] = value or ""
            case "priority":
                if value is None:
                    raise Problem("priority", "priority cannot be empty; give P0, P1, P2 or P3.")
                number = int(value[1])
                changes |= {"priority": number, "lane": number, "lane_since": moment}
            case "tags":
                changes["tags"] = value or []
            case "note":
                data["note"] = value
            case "run_after":
                changes["run_after"] = value
                if row["status"] == Status.PENDING and row["phase"] == Phase.WORK:
                    changes["ready_at"] = max(moment, value or moment)
            case "payload":
                _check_payload(tx, catalogue, row, value)
                data |= {"payload": value, "payload_hash": payload_hash(value)}
                if row["status"] != Status.NEEDS_REVIEW:
                    # What was approved before is not this: a requeue starts anew. While a person is asked about an
                    # action, it is still that action which has happened or not.
                    changes["phase"] = Phase.WORK
                changes |= _key(tx, catalogue, row, value)
            case _:
                changes[name] = value
    return changes, data


def _key(tx: Connection, catalogue: Catalogue, row: RowMapping, payload: dict[str, Any]) -> dict[str, Any]:
    """Another payload may be under another limit: then it gets in line again."""
    spec = catalogue.current(tx, row["type"]).spec
    seen = {name: row[name] for name in ("task_id", "type", "title", "source", "tags")}
    moment = read_now(tx)
    context = seen | {
        "payload": payload,
        "priority": f"P{row['priority']}",
        "callback": {"url": row["callback_url"]},
        "today": moment.date().isoformat(),
        "now": moment.isoformat(),
    }
    key = key_of(spec, context)
    return {} if key == row["limit_key"] else {"limit_key": key, "held_by": None, "let_in": None}


def _check_payload(tx: Connection, catalogue: Catalogue, row: RowMapping, payload: dict[str, Any] | None) -> None:
    if payload is None:
        raise Problem("payload", "payload must be an object.")
    approved = row["status"] == Status.PENDING and row["phase"] == Phase.ACT
    if Status(row["status"]) not in PAYLOAD_OPEN or approved:
        raise Problem(
            "payload",
            f"The payload of a task that is {'approved' if approved else row['status']} cannot be changed.",
            "illegal_state",
        )
    spec = catalogue.current(tx, row["type"]).spec
    if problem := payload_problem(spec, payload):
        raise Problem(*problem)


def _plain(name: str, value: Any) -> Any:
    """A value as the history shows it."""
    if name == "priority":
        return f"P{value}"
    return time(value) if isinstance(value, datetime) else value
