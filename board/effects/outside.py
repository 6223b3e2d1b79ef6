"""The ledger for outside programs: they announce a call before they make it, and say how it went.

reserved → sent → confirmed | rejected | unknown, as for the board's own calls; but here the board sees nothing of the
call itself. So what is reserved may have been sent, and nobody but its program, or a person, can say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, select, update

from board.db.clock import now
from board.db.insert import insert_once
from board.effects import journal
from board.effects.models import operations
from board.effects.operations import OPEN, by_key
from board.tasks.history import By
from board.tasks.states import Phase
from board.tasks.view import time

KIND = "outside"
# An announced call that is not closed after this time is shown as left open: most calls take seconds, a slow
# flow a few minutes. It stays what it is; only its program or a person closes it.
LEFT_OPEN_AFTER = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Announced:
    """What a program is about to do. by: who it is; task, lease_token: the task that it holds a claim of.

    task without a lease token: what it is about, no more. harmless: doing it twice hurts nobody.
    """

    key: str
    target: str
    request_hash: str
    by: By
    execution_id: str | None = None
    task: RowMapping | None = None
    lease_token: int = 0
    harmless: bool = False


@dataclass(frozen=True, slots=True)
class Reservation:
    """go_ahead: make the call now. made: reserved by this very call. message: the same in words."""

    operation: RowMapping
    go_ahead: bool
    made: bool
    message: str


class OtherContent(Exception):
    """The key is used for something else: another `request_hash`."""

    def __init__(self, operation: RowMapping) -> None:
        about = f" for task {operation['task_id']}" if operation["task_id"] else ""
        super().__init__(
            f"The key “{operation['key']}” was used before{about} with another content (request_hash) and is "
            f"{operation['status']}. Nothing was reserved; another business action needs another key."
        )
        self.operation = operation


def reserve(tx: Connection, wanted: Announced) -> Reservation:
    """Reserve the key, or say what is recorded under it. Raises OtherContent, which its caller records."""
    values = _values(wanted)
    made = insert_once(tx, operations, "key", values | {"created_at": now()})
    if made is None:
        stored = by_key(tx, wanted.key, lock=True)
        assert stored is not None
        if not _free(stored, wanted):
            if stored["request_hash"] != wanted.request_hash:
                raise OtherContent(stored)
            return _recorded(stored, wanted)
        again = {"tries": operations.c.tries + 1, "sent_at": None, "closed_at": None, "resolution": None}
        statement = update(operations).where(operations.c.id == stored["id"]).values(values | again)
        made = tx.execute(statement.returning(operations)).mappings().one()
    data = {"execution_id": wanted.execution_id} if wanted.execution_id else None
    journal.note(tx, made["id"], "reserved", wanted.by, None, data)
    return Reservation(made, True, True, "Go ahead, then say how it went.")


def left_open(connection: Connection, task: RowMapping) -> Sequence[RowMapping]:
    """Calls with side effects that claims of this task have announced and nobody has closed; the latest first."""
    query = (
        select(operations)
        .where(operations.c.task == task["id"], operations.c.owner.is_not(None), operations.c.lease_token > 0)
        .where(operations.c.status.in_([*OPEN, "unknown"]), operations.c.harmless.is_(False))
        .order_by(operations.c.id.desc())
    )
    return connection.execute(query).mappings().all()


def lose(tx: Connection, found: Sequence[RowMapping], by: By, note: str) -> None:
    """Whoever announced these calls is gone: their outcome is unknown."""
    for row in found:
        if row["status"] in OPEN:
            lost = update(operations).where(operations.c.id == row["id"], operations.c.status == row["status"])
            tx.execute(lost.values(status="unknown", closed_at=now(), last_error=note))
            journal.note(tx, row["id"], "unknown", by, note)


def is_left_open(row: RowMapping, moment: datetime) -> bool:
    """Whether a call that was announced has been open for so long that its program has probably died."""
    if row["owner"] is None or row["status"] not in OPEN:
        return False
    return bool((row["sent_at"] or row["created_at"]) < moment - LEFT_OPEN_AFTER)


def _values(wanted: Announced) -> dict[str, Any]:
    return {
        "key": wanted.key,
        "task": wanted.task["id"] if wanted.task is not None else None,
        "task_id": wanted.task["task_id"] if wanted.task is not None else None,
        "phase": Phase.WORK if wanted.lease_token else None,
        "lease_token": wanted.lease_token,
        "owner": wanted.by.identity,
        "execution_id": wanted.execution_id,
        "kind": KIND,
        "target": wanted.target,
        "connection": None,
        "request_hash": wanted.request_hash,
        "body": None,
        "status": "reserved",
        "external_reference": None,
        "last_error": None,
        "tries": 1,
        "asks": 0,
        "harmless": wanted.harmless,
    }


def _free(stored: RowMapping, wanted: Announced) -> bool:
    """Whether the key may be reserved again: it is proven that nothing happened, or a repeat hurts nobody."""
    if stored["owner"] is None:
        return False  # the board's own
    mine = stored["owner"] == wanted.by.identity
    same_task = wanted.task is not None and stored["task"] == wanted.task["id"]
    if stored["status"] == "rejected":
        return stored["resolution"] != "drop" and (mine or same_task)
    later = same_task and bool(wanted.lease_token) and stored["lease_token"] < wanted.lease_token
    return stored["status"] != "confirmed" and later and wanted.harmless and bool(stored["harmless"])


def _recorded(stored: RowMapping, wanted: Announced) -> Reservation:
    status = stored["status"]
    own = stored["owner"] == wanted.by.identity and (
        wanted.execution_id is not None and stored["execution_id"] == wanted.execution_id
    )
    if status == "reserved" and own and stored["lease_token"] == wanted.lease_token:
        # Its answer may have been lost on the way: the same run asks again and gets the same answer.
        return Reservation(stored, True, False, "You have reserved this already: go ahead, then say how it went.")
    whose = _whose(stored)
    match status:
        case "confirmed":
            reference = stored["external_reference"]
            text = "This was done before" + (f"; its reference is {reference}." if reference else ".")
        case "unknown":
            text = "This was sent before and nobody knows whether it happened; a person decides. Do not send it."
        case "rejected" if stored["resolution"] == "drop":
            text = "A person has dropped this. Do not send it."
        case "rejected":
            text = f"This was refused, and may be tried again by {whose} only. Do not send it."
        case _:
            since = time(stored["sent_at"] or stored["created_at"])
            text = f"This is {status} by {whose} since {since} and not closed. Do not send it."
    return Reservation(stored, False, False, text)


def _whose(stored: RowMapping) -> str:
    who = str(stored["owner"] or "the board")
    run = f" (execution {stored['execution_id']})" if stored["execution_id"] else ""
    return who + run + (f" for task {stored['task_id']}" if stored["task_id"] else "")
