"""Word to the caller: an outbox row for a task's `callback_url`, written in the transaction of the move itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, case, select, update

from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue
from board.db.clock import now, read_now
from board.db.many import among, insert_many, listed
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
DocumentsOfMany = Callable[[Connection, list[RowMapping]], list[dict[str, Any]]]


class Callbacks:
    """A follower of the ledger. documents: makes task objects of the contract, in the order of their rows."""

    def __init__(self, catalogue: Catalogue, documents: DocumentsOfMany) -> None:
        self._catalogue = catalogue
        self._documents = documents

    def __call__(self, tx: Connection, moved: Moved) -> None:
        self.all(tx, [moved])

    def all(self, tx: Connection, moves: Sequence[Moved]) -> None:
        """The same for moves of many tasks, in a few statements whatever their number."""
        told = [moved for moved in moves if self._tells(tx, moved)]
        if not told:
            return
        before, moment = _before_them(tx, told), read_now(tx)
        documents = self._documents(tx, [moved.task for moved in told])
        rows = [
            _row(moved, document, before.get(moved.task["id"]), moment)
            for moved, document in zip(told, documents, strict=True)
        ]
        insert_many(tx, operations, rows)

    def _tells(self, tx: Connection, moved: Moved) -> bool:
        task = moved.task
        if not task["callback_url"] or moved.source is moved.status:
            return False
        if not (moved.closes or moved.status is Status.NEEDS_REVIEW):
            return False
        return _told(self._catalogue.version(tx, task["type"], task["type_version"]).spec, moved.status)


def _row(moved: Moved, document: dict[str, Any], after: int | None, moment: datetime) -> dict[str, Any]:
    task, url = moved.task, moved.task["callback_url"]
    body = envelope(f"task.{moved.status}", task["event_seq"], document, time(task["updated_at"]))
    # A rejection can be undone for a while.
    due = moment + timedelta(seconds=float((moved.data or {}).get("leaves_in", 0.0)))
    return {
        "key": f"callback:{task['task_id']}:{task['event_seq']}",
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
        "created_at": moment,
    }


def _told(spec: TypeSpec, status: Status) -> bool:
    """Whether the caller hears of it. A flow that waits is resumed instead of told `done`, and never waits in vain."""
    if spec.resumes and status in TERMINAL:
        return status is not Status.DONE
    return status in spec.callback.events


def _before_them(tx: Connection, told: Sequence[Moved]) -> dict[int, int]:
    """For each task, by internal id, its event that is still on its way to the same address: the new one leaves after
    it.

    It is outdated from now on: tried at once if it is only waiting, and given up soon. Locked until the commit, so that
    whoever closes it just now sees the new one.
    """
    dialect = tx.dialect.name
    urls = {moved.task["id"]: moved.task["callback_url"] for moved in told}
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


def envelope(event: str, seq: int, task: dict[str, Any], at: str | None) -> bytes:
    """The body of every outgoing webhook. `seq` grows per task: a receiver drops what is older than it has seen."""
    return dump_json({"event": event, "seq": seq, "task": task, "decision": task.get("decision"), "at": at}).encode()
