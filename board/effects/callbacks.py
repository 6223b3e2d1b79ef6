"""Word to the caller: an outbox row for a task's `callback_url`, written in the transaction of the move itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, RowMapping, case, insert, select, update

from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue
from board.db.clock import now
from board.db.types import dump_json
from board.effects.addresses import masked, receiver
from board.effects.models import operations
from board.effects.operations import CALLBACK, OPEN, request_hash
from board.tasks.ledger import Moved
from board.tasks.states import TERMINAL, Status
from board.tasks.view import time

# A receiver that is down over a weekend still gets its word; after that somebody has noticed.
GIVE_UP_AFTER = 3 * 86400.0
# So long an event that is no longer the latest of its task is tried before the later one leaves without it. A receiver
# that starts anew is back by then; nobody should wait much longer for the end of a task because of its middle.
OUTDATED_AFTER = 600.0
# A call may just be out for a row that is tried again sooner than this; seconds, longer than any call takes.
TAKEN_SECONDS = 60.0

Documents = Callable[[Connection, RowMapping], dict[str, Any]]


class Callbacks:
    """A follower of the ledger. documents: makes the task object of the contract."""

    def __init__(self, catalogue: Catalogue, documents: Documents) -> None:
        self._catalogue = catalogue
        self._documents = documents

    def __call__(self, tx: Connection, moved: Moved) -> None:
        task = moved.task
        url = task["callback_url"]
        if not url or not (moved.closes or moved.status is Status.NEEDS_REVIEW) or moved.source is moved.status:
            return
        spec = self._catalogue.version(tx, task["type"], task["type_version"]).spec
        if not _told(spec, moved.status):
            return
        document = self._documents(tx, task)
        body = envelope(f"task.{moved.status}", task["event_seq"], document, time(task["updated_at"]))
        wait = float((moved.data or {}).get("leaves_in", 0.0))  # a rejection can be undone for a while
        tx.execute(
            insert(operations).values(
                key=f"callback:{task['task_id']}:{task['event_seq']}",
                task=task["id"],
                task_id=task["task_id"],
                phase=task["phase"],
                lease_token=task["lease_token"],
                kind=CALLBACK,
                target=masked(url),
                url=url,
                receiver=receiver(url),
                after=_before_it(tx, task["id"], url),
                request_hash=request_hash(body),
                body=body.decode(),
                status="reserved",
                tries=0,
                next_try_at=now(wait),
                give_up_at=now(wait + GIVE_UP_AFTER),
                created_at=now(),
            )
        )


def _told(spec: TypeSpec, status: Status) -> bool:
    """Whether the caller hears of it. A flow that waits is resumed instead of told `done`, and never waits in vain."""
    if spec.resumes and status in TERMINAL:
        return status is not Status.DONE
    return status in spec.callback.events


def _before_it(tx: Connection, task: int, url: str) -> int | None:
    """The event of the same task that is still on its way to the same address: the new one leaves after it.

    It is outdated from now on: tried at once if it is only waiting, and given up soon. Locked until the commit, so that
    whoever closes it just now sees the new one.
    """
    earlier = (
        select(operations.c.id)
        .where(operations.c.task == task, operations.c.kind == CALLBACK, operations.c.url == url)
        .where(operations.c.status.in_(OPEN))
        .order_by(operations.c.id.desc())
        .limit(1)
    )
    if tx.dialect.name == "postgresql":
        earlier = earlier.with_for_update()
    found = tx.execute(earlier).scalar()
    if found is None:
        return None
    due, end = operations.c.next_try_at, operations.c.give_up_at
    tx.execute(
        update(operations)
        .where(operations.c.id == found)
        .values(
            next_try_at=case((due > now(TAKEN_SECONDS), now()), else_=due),
            give_up_at=case((end > now(OUTDATED_AFTER), now(OUTDATED_AFTER)), else_=end),
        )
    )
    return int(found)


def envelope(event: str, seq: int, task: dict[str, Any], at: str | None) -> bytes:
    """The body of every outgoing webhook. `seq` grows per task: a receiver drops what is older than it has seen."""
    return dump_json({"event": event, "seq": seq, "task": task, "decision": task.get("decision"), "at": at}).encode()
