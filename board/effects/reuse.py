"""May a key that exists already be used again? The rule by which two that mean the same business action act once."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, select

from board.ports import AlreadyConfirmed, OperationBusy, OperationConflict
from board.tasks.ledger import Lease
from board.tasks.models import tasks
from board.tasks.states import TERMINAL, Status

# While another task's call is out its answer is due within half a minute; for one that waits for a person's word
# nobody need look so often.
BUSY_SECONDS, UNDECIDED_SECONDS = 30.0, 300.0
LONGEST_WAIT = 3600.0  # a task that waits for days looks once an hour; its history must stay readable


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


def reusable(tx: Connection, stored: RowMapping, task: RowMapping, lease: Lease, wanted: Wanted, digest: str) -> bytes:
    """The bytes to send when the key exists already, or the reason why nothing may be sent."""
    if stored["task"] != task["id"]:
        return _from_others(tx, stored, lease, wanted, digest)
    same = stored["request_hash"] == digest
    status, key = stored["status"], wanted.key
    if status == "confirmed":
        if wanted.resend and not wanted.fixed:
            return wanted.request  # put back to start anew, and doing it twice hurts nobody: a judgement is made again
        raise AlreadyConfirmed(stored["external_reference"])
    if status != "rejected":
        if not wanted.resend and (status == "unknown" or stored["lease_token"] != lease.token):
            raise OperationConflict(
                f"Whether “{key}” has happened is unknown; a person must decide that first.", unknown=True
            )
        if wanted.fixed and not same:
            raise OperationConflict(
                f"What was sent under “{key}” had another content, and its outcome is unknown; a person must decide "
                "that first. Nothing was sent.",
                unknown=True,
            )
    return str(stored["body"]).encode() if wanted.fixed and stored["body"] is not None and same else wanted.request


def _from_others(tx: Connection, stored: RowMapping, lease: Lease, wanted: Wanted, digest: str) -> bytes:
    """The same for a key that another task, or an outside program, has used."""
    key, status = wanted.key, stored["status"]
    whose = f"task {stored['task_id']}" if stored["owner"] is None else f"the outside program {stored['owner']}"
    if status == "rejected" and _given_up(tx, stored):
        return wanted.request  # it is proven that nothing happened, and nobody will try it again: free to be taken over
    if wanted.fixed and stored["request_hash"] != digest:
        raise OperationConflict(
            f"The operation “{key}” belongs to {whose}, which has another content; nothing was sent. "
            "Another business action needs another key."
        )
    if status == "confirmed":
        raise AlreadyConfirmed(stored["external_reference"])
    if status == "unknown":
        raise OperationBusy(
            f"Whether “{key}” of {whose} has happened is unknown; as soon as that is decided, this task goes on.",
            _pause(UNDECIDED_SECONDS, lease),
        )
    name = f"Task {stored['task_id']}" if stored["owner"] is None else f"The outside program {stored['owner']}"
    raise OperationBusy(f"{name} is just doing the same (“{key}”).", _pause(BUSY_SECONDS, lease))


def _pause(seconds: float, lease: Lease) -> float:
    """Longer with each attempt of this task, so that a wait of days leaves no thousand events."""
    return min(LONGEST_WAIT, seconds * 2.0 ** min(max(lease.token - 2, 0), 10))


def _given_up(tx: Connection, stored: RowMapping) -> bool:
    """Whether nobody will take up a rejected operation again: its task has ended, or is gone."""
    if stored["resolution"] == "drop" and stored["owner"] is not None:
        return False  # a person said that this is not to be done
    if stored["task"] is None:
        return True
    status = tx.execute(select(tasks.c.status).where(tasks.c.id == stored["task"])).scalar()
    return status is None or Status(status) in TERMINAL
