"""The ledger of side effects. Reserve and commit before the call, close with the answer; what is open is asked about.

reserved → sent → confirmed | rejected | unknown. A rejected operation may be reserved again by its own task. The key
is unique for ever: two tasks that mean the same business action meet here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from board.db.clock import now
from board.effects.models import deliveries, operations
from board.ports import AlreadyConfirmed, OperationBusy, OperationConflict, SentOperation, Stopped
from board.tasks.ledger import Lease
from board.tasks.models import tasks
from board.tasks.states import Status
from board.tasks.text import clean

CALLBACK = "webhook.callback"  # the kind of outbox rows: word to the caller about the task's end
OPEN = ("reserved", "sent")
MAX_DETAIL = 500  # characters of an answer that are kept: enough to recognise an error page


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a handler announces.

    content: what it is about; another task that uses the key must mean the same. resend: an earlier unknown outcome of
    this very task may be tried again.
    """

    key: str
    kind: str
    target: str
    request: bytes
    content: bytes
    connection: str | None
    fixed: bool
    resend: bool


def default_key(use: str, connection: str | None, task_id: str, round_: int) -> str:
    """One business action per handler, connection, task and review round."""
    key = f"{use}:{connection or '-'}:{task_id}"
    return key if round_ == 1 else f"{key}:round-{round_}"


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
    body = _check_reuse(stored, task, wanted, digest)
    tx.execute(
        update(operations)
        .where(operations.c.id == stored["id"], operations.c.status == stored["status"])
        .values(
            status="sent",
            lease_token=lease.token,
            phase=task["phase"],
            request_hash=digest,
            body=body.decode() if wanted.fixed else None,
            external_reference=None,
            last_error=None,
            tries=operations.c.tries + 1,
            sent_at=now(),
            closed_at=None,
        )
    )
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


def log_delivery(
    tx: Connection, operation: int, *, milliseconds: int, http_status: int | None, outcome: str, detail: str
) -> None:
    """One row per try: what came back."""
    tx.execute(
        insert(deliveries).values(
            operation=operation,
            at=now(),
            milliseconds=milliseconds,
            http_status=http_status,
            outcome=outcome,
            detail=clean(detail[:MAX_DETAIL]),
        )
    )


def left_open(connection: Connection, task: RowMapping) -> RowMapping | None:
    """What an earlier attempt of this task sent in this phase, and nobody knows how it went."""
    query = (
        select(operations)
        .where(operations.c.task == task["id"], operations.c.phase == task["phase"])
        .where(operations.c.kind != CALLBACK, operations.c.status.in_(["sent", "unknown"]))
        .order_by(operations.c.id.desc())
        .limit(1)
    )
    return connection.execute(query).mappings().first()


def as_sent(row: RowMapping) -> SentOperation:
    """An open operation as a handler's `reconcile` sees it."""
    return SentOperation(
        key=row["key"],
        kind=row["kind"],
        target=row["target"],
        user=attempt_user(row["task"], row["lease_token"]),
        reference=row["external_reference"],
        sent_at=row["sent_at"],
    )


def attempt_user(task: int, lease_token: int) -> str:
    """The name under which one attempt is known outside; Dify's run log is searched by it."""
    return f"board:{task}:{lease_token}"


def callbacks_sent_since(connection: Connection, task: int, moment: datetime) -> bool:
    """Whether any word about the task has left the house since then."""
    query = select(operations.c.id).where(
        operations.c.task == task,
        operations.c.kind == CALLBACK,
        operations.c.created_at >= moment,
        operations.c.tries > 0,
    )
    return connection.execute(query.limit(1)).scalar() is not None


def drop_unsent_callbacks(tx: Connection, task: int, moment: datetime) -> None:
    """The decision that reserved them was undone; nothing of them has left the house."""
    tx.execute(
        delete(operations).where(
            operations.c.task == task,
            operations.c.kind == CALLBACK,
            operations.c.created_at >= moment,
            operations.c.tries == 0,
        )
    )


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


def _check_reuse(stored: RowMapping, task: RowMapping, wanted: Wanted, digest: str) -> bytes:
    """The bytes to send when the key exists already, or the reason why nothing may be sent."""
    own = stored["task"] == task["id"]
    if not own and wanted.fixed and stored["request_hash"] != digest:
        raise OperationConflict(
            f"The operation “{wanted.key}” belongs to task {stored['task_id']}, which has another content; nothing was "
            "sent."
        )
    if stored["status"] == "confirmed":
        if own and wanted.resend and not wanted.fixed:
            return wanted.request  # put back to start anew, and doing it twice hurts nobody: a judgement is made again
        raise AlreadyConfirmed(stored["external_reference"])
    if not own and stored["status"] in OPEN:
        raise OperationBusy(f"Task {stored['task_id']} is just doing the same (“{wanted.key}”).")
    if not own:
        raise OperationConflict(
            f"The operation “{wanted.key}” belongs to task {stored['task_id']} and is {stored['status']}."
        )
    if stored["status"] == "unknown" and not wanted.resend:
        raise OperationConflict(f"Whether “{wanted.key}” has happened is unknown; a person must decide that first.")
    same = wanted.fixed and stored["body"] is not None and stored["request_hash"] == digest
    return str(stored["body"]).encode() if same else wanted.request
