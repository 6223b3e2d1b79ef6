"""The ledger of side effects. Reserve and commit before the call, close with the answer; what is open is asked about.

reserved → sent → confirmed | rejected | unknown. A rejected operation may be reserved again by its own task. The key
is unique for ever: two tasks that mean the same business action meet here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, RowMapping, Update, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from board.db.clock import now, read_now
from board.db.many import given, insert_many, pack
from board.effects import journal
from board.effects.models import deliveries, operations
from board.effects.reuse import Wanted, reusable
from board.ports import Stopped
from board.tasks.history import By
from board.tasks.ledger import Lease
from board.tasks.models import tasks
from board.tasks.states import Status
from board.tasks.text import clean
from board.templating import TemplateProblem

CALLBACK = "webhook.callback"  # the kind of outbox rows: word to the caller about the task's end
SUBSCRIPTION = "webhook.subscription"  # the other kind of outbox rows: word to a subscription
OPEN = ("reserved", "sent")
MAX_DETAIL = 500  # characters of an answer that are kept: enough to recognise an error page
MAX_KEY = 500  # characters; PostgreSQL's index takes 2700 bytes, and a person has to read it


class Closed(NamedTuple):
    """How one of many operations is closed. status: confirmed, rejected or unknown."""

    operation: int
    status: str
    external_reference: str | None
    error: str | None


# The columns of `Closed`, in its order.
_CLOSED = {name: operations.c[name] for name in ("id", "status", "external_reference", "last_error")}


class Delivered(NamedTuple):
    """One try of an operation, for the delivery log.

    outcome: confirmed, rejected, unknown or transient. detail: the answer's text, or why there was none.
    """

    operation: int
    milliseconds: int
    http_status: int | None
    outcome: str
    detail: str


def default_key(use: str, connection: str | None, task_id: str, round_: int) -> str:
    """One business action per handler, connection, task and review round."""
    key = f"{use}:{connection or '-'}:{task_id}"
    return key if round_ == 1 else f"{key}:round-{round_}"


def own_key(text: str) -> str:
    """A type's own key as it is stored. Raises TemplateProblem when nobody could read or index it."""
    if len(text) > MAX_KEY:
        raise TemplateProblem(f"The operation_key has {len(text)} characters; at most {MAX_KEY} are allowed.")
    return str(clean(text))


def request_hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def send(tx: Connection, task: RowMapping, lease: Lease, wanted: Wanted) -> tuple[int, bytes]:
    """Reserve the operation for this attempt and mark it sent. Returns its id and the bytes to send.

    The caller commits before the call goes out. Raises Stopped when the lease is void, OperationConflict and
    AlreadyConfirmed as board.ports.Job.send says.
    """
    _require_lease(tx, lease)
    digest = request_hash(wanted.content)
    row: dict[str, Any] = {
        "key": wanted.key,
        "task": task["id"],
        "task_id": task["task_id"],
        "phase": task["phase"],
        "lease_token": lease.token,
        "kind": wanted.kind,
        "target": wanted.target,
        "connection": wanted.connection,
        "request_hash": digest,
        "body": wanted.request.decode() if wanted.fixed else None,
        "status": "sent",
        "tries": 1,
        "asks": 0,
        "harmless": wanted.resend,
        "created_at": now(),
        "sent_at": now(),
    }
    dialect = sqlite if tx.dialect.name == "sqlite" else postgresql
    fresh = dialect.insert(operations).values(**row).on_conflict_do_nothing().returning(operations.c.id)
    made = tx.execute(fresh).scalar()
    if made is not None:
        return int(made), wanted.request
    stored = by_key(tx, wanted.key, lock=True)
    assert stored is not None
    body = reusable(tx, stored, task, lease, wanted, digest)
    again = row | {
        "body": body.decode() if wanted.fixed else None,
        "tries": operations.c.tries + 1,
        "created_at": stored["created_at"],
        "owner": None,
        "external_reference": None,
        "last_error": None,
        "resolution": None,
        "closed_at": None,
    }
    tx.execute(update(operations).where(operations.c.id == stored["id"]).values(**again))
    if stored["task"] != task["id"]:
        former = f"task {stored['task_id']}" if stored["owner"] is None else stored["owner"]
        by = By("worker", task["lease_owner"] or "", "worker")
        journal.note(tx, stored["id"], "reserved", by, f"Task {task['task_id']} took it over from {former}.")
    return int(stored["id"]), body


def reference(tx: Connection, operation: int, lease: Lease, external_reference: str) -> None:
    """Store the outside system's own id as soon as it is known. Raises Stopped when the lease is void."""
    _require_lease(tx, lease)
    tx.execute(update(operations).where(operations.c.id == operation).values(external_reference=external_reference))


def close(
    tx: Connection, operation: int, status: str, *, external_reference: str | None = None, error: str | None = None
) -> None:
    """Close an open or unknown operation as confirmed, rejected or unknown."""
    values: dict[str, Any] = {"status": status, "closed_at": now(), "last_error": error, "next_try_at": None}
    if external_reference is not None:
        values["external_reference"] = external_reference
    tx.execute(
        update(operations)
        .where(operations.c.id == operation, operations.c.status.in_([*OPEN, "unknown"]))
        .values(**values)
    )


def close_many(tx: Connection, closed: Sequence[Closed]) -> None:
    """Close many as `close` does. An external reference that is known already is kept where none is given."""
    if not closed:
        return
    rows = [dict(zip(_CLOSED, it, strict=True)) for it in closed]
    tx.execute(_closing(tx.dialect.name), pack(tx.dialect.name, _CLOSED, rows, travel=_CLOSED).parameters)


@lru_cache(maxsize=2)
def _closing(dialect: str) -> Update:
    rows = given(dialect, _CLOSED)
    return (
        update(operations)
        .where(operations.c.id == rows.c.id, operations.c.status.in_([*OPEN, "unknown"]))
        .values(
            status=rows.c.status,
            closed_at=now(),
            last_error=rows.c.last_error,
            next_try_at=None,
            external_reference=func.coalesce(rows.c.external_reference, operations.c.external_reference),
        )
    )


def log_deliveries(tx: Connection, tries: Sequence[Delivered]) -> None:
    """One row per try: what came back."""
    if tries:
        moment = read_now(tx)
        rows = [it._asdict() | {"at": moment, "detail": clean(it.detail[:MAX_DETAIL])} for it in tries]
        insert_many(tx, deliveries, rows)


def by_key(connection: Connection, key: str, *, lock: bool = False) -> RowMapping | None:
    query = select(operations).where(operations.c.key == key)
    if lock and connection.dialect.name == "postgresql":
        query = query.with_for_update()
    return connection.execute(query).mappings().first()


def by_id(connection: Connection, operation: int, *, lock: bool = False) -> RowMapping | None:
    query = select(operations).where(operations.c.id == operation)
    if lock and connection.dialect.name == "postgresql":
        query = query.with_for_update()
    return connection.execute(query).mappings().first()


def of_task(connection: Connection, task: int) -> Sequence[RowMapping]:
    """Every operation of a task, oldest first."""
    query = select(operations).where(operations.c.task == task).order_by(operations.c.id)
    return connection.execute(query).mappings().all()


def _require_lease(tx: Connection, lease: Lease) -> None:
    query = select(tasks.c.id).where(
        tasks.c.id == lease.task,
        tasks.c.lease_token == lease.token,
        tasks.c.status == Status.RUNNING,
        tasks.c.cancel_requested.is_(False),
    )
    if tx.dialect.name == "postgresql":
        query = query.with_for_update()  # nobody may take the lease away between this look and the commit
    if tx.execute(query).scalar() is None:
        raise Stopped("This attempt no longer holds its task.")
