"""Writes out what callers are to be told: from a note of a task and an event, the very bytes that are sent.

A call says how the task was when it moved. So a note is written out before its task changes again: whoever is about to
change a task that is at rest has locked its row, and so has whoever writes out; the first of the two does it. Mostly
that is the sender, at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, case, delete, select, update
from sqlalchemy.sql.dml import ReturningDelete

from board.catalogue.store import Catalogue
from board.db.clock import now
from board.db.many import among, insert_many, listed
from board.db.types import dump_json
from board.effects.addresses import masked, receiver
from board.effects.models import operations, untold
from board.effects.operations import CALLBACK, OPEN, request_hash
from board.tasks.models import tasks
from board.tasks.view import time

# A receiver that is down over a weekend still gets its word; after that somebody has noticed.
GIVE_UP_AFTER = 3 * 86400.0
# So long an event that is no longer the latest of its task is tried before the later one leaves without it. A receiver
# that starts anew is back by then; nobody should wait much longer for the end of a task because of its middle.
OUTDATED_AFTER = 600.0
# A call may just be out for a row that is tried again sooner than this; seconds, longer than any call takes.
TAKEN_SECONDS = 60.0
# Notes that are written out in one transaction: a few statements for all of them, and still a matter of milliseconds.
BATCH = 200

Documents = Callable[[Connection, RowMapping], dict[str, Any]]
DocumentsOfMany = Callable[[Connection, list[RowMapping]], list[dict[str, Any]]]


class Scribe:
    """documents: makes task objects of the contract, in the order of their rows."""

    def __init__(self, catalogue: Catalogue, documents: DocumentsOfMany) -> None:
        self._catalogue, self.documents = catalogue, documents

    def write_out(self, tx: Connection, rows: Sequence[RowMapping]) -> bool:
        """Write out what is noted of these tasks; whether there was anything.

        rows: of `tasks`, locked, and as they were when they moved.
        """
        dialect = tx.dialect.name
        noted = sorted(tx.execute(_take_notes(dialect), listed(dialect, [row["id"] for row in rows])).all())
        if not noted:
            return False
        by_id = {row["id"]: row for row in rows}
        told = [by_id[note.task] for note in noted]
        before = _before_them(tx, told)
        made = [
            _row(note.seq, task, document, before.get(task["id"]), note.due_at or task["updated_at"])
            | {"connection": self._signs_in(tx, task)}
            for note, task, document in zip(noted, told, self.documents(tx, told), strict=True)
        ]
        insert_many(tx, operations, made)
        return True

    def _signs_in(self, tx: Connection, task: RowMapping) -> str | None:
        """The connection whose header, password or token goes along: a flow that waits checks it in every call."""
        spec = self._catalogue.version(tx, task["type"], task["type_version"]).spec
        return spec.action.connection if spec.action and spec.resumes else None

    def write_some(self, tx: Connection) -> bool:
        """Write out the first notes of all. True when there may be more. Tasks that somebody holds are his to do."""
        rows = tx.execute(_noted(tx.dialect.name)).mappings().all()
        if rows:
            self.write_out(tx, rows)
        return len(rows) == BATCH


def _row(seq: int, task: RowMapping, document: dict[str, Any], after: int | None, due: datetime) -> dict[str, Any]:
    url = task["callback_url"]
    body = envelope(f"task.{task['status']}", seq, document, time(task["updated_at"]))
    return {
        "key": f"callback:{task['task_id']}:{seq}",
        "task": task["id"],
        "task_id": task["task_id"],
        "phase": task["phase"],
        "lease_token": task["lease_token"],
        "kind": CALLBACK,
        "target": masked(url),
        "url": url,
        "receiver": receiver(url),
        "after": after,
        "request_hash": request_hash(body),
        "body": body.decode(),
        "status": "reserved",
        "tries": 0,
        "next_try_at": due,
        "give_up_at": due + timedelta(seconds=GIVE_UP_AFTER),
        "created_at": task["updated_at"],
    }


@lru_cache(maxsize=2)
def _noted(dialect: str) -> Select[Any]:
    """The tasks of the first notes. By a join, so that a note whose task is gone is in nobody's way."""
    query = select(tasks).join_from(untold, tasks, tasks.c.id == untold.c.task).order_by(untold.c.task).limit(BATCH)
    return query.with_for_update(of=tasks, skip_locked=True) if dialect == "postgresql" else query


@lru_cache(maxsize=2)
def _take_notes(dialect: str) -> ReturningDelete[Any]:
    return delete(untold).where(among(dialect, untold.c.task)).returning(untold.c.task, untold.c.seq, untold.c.due_at)


def _before_them(tx: Connection, told: Sequence[RowMapping]) -> dict[int, int]:
    """For each task, by internal id, its event that is still on its way to the same address: the new one leaves after
    it.

    It is outdated from now on: tried at once if it is only waiting, and given up soon. Locked until the commit, so that
    whoever closes it just now sees the new one.
    """
    dialect = tx.dialect.name
    urls = {task["id"]: task["callback_url"] for task in told}
    rows = tx.execute(_on_their_way(dialect), listed(dialect, sorted(urls)))
    found = {row.task: int(row.id) for row in rows if row.url == urls[row.task]}  # the last one of each counts
    if found:
        due, end = operations.c.next_try_at, operations.c.give_up_at
        tx.execute(
            update(operations)
            .where(operations.c.id.in_(sorted(found.values())))
            .values(
                next_try_at=case((due > now(TAKEN_SECONDS), now()), else_=due),
                give_up_at=case((end > now(OUTDATED_AFTER), now(OUTDATED_AFTER)), else_=end),
            )
        )
    return found


@lru_cache(maxsize=2)
def _on_their_way(dialect: str) -> Select[Any]:
    query = (
        select(operations.c.id, operations.c.task, operations.c.url)
        .where(among(dialect, operations.c.task), operations.c.kind == CALLBACK, operations.c.status.in_(OPEN))
        .order_by(operations.c.id)
    )
    return query.with_for_update() if dialect == "postgresql" else query


def envelope(event: str, seq: int, task: dict[str, Any] | None, at: str | None, **more: Any) -> bytes:
    """The body of every outgoing webhook. `seq` grows per task: a receiver drops what is older than it has seen.

    task: None where the event is not about one; then it comes with keys of its own.
    """
    decision = task.get("decision") if task is not None else None
    return dump_json({"event": event, "seq": seq, "task": task, "decision": decision, "at": at, **more}).encode()
