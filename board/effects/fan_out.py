"""Writes out for each subscription what it is to hear: rows of the outbox, in the order of their tasks' events.

One transaction at a time does this, and it locks rows of the outbox only, in the order in which the sender does: so
nobody who moves tasks waits for a receiver's trouble.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, delete, select

from board.db.locks import Turn, wait_for_turn
from board.db.many import among, insert_many, listed
from board.effects.addresses import masked, receiver
from board.effects.models import announcements, operations, subscriptions
from board.effects.operations import OPEN, SUBSCRIPTION, request_hash
from board.effects.scribe import BATCH, GIVE_UP_AFTER, DocumentsOfMany, envelope
from board.effects.subscriptions import ownerless, switch_off
from board.tasks.models import tasks
from board.tasks.view import time


def write_some(tx: Connection, documents: DocumentsOfMany) -> bool:
    """Write out the first announcements of all. True when there may be more."""
    wait_for_turn(tx, Turn.ANNOUNCEMENTS)
    noted = tx.execute(select(announcements).order_by(announcements.c.id).limit(BATCH)).mappings().all()
    if not noted:
        return False
    tx.execute(delete(announcements).where(announcements.c.id.in_([row["id"] for row in noted])))
    bodies = _bodies(tx, noted, documents)
    wanting = _wanting(tx)
    rows = [
        _row(it, subscription, bodies[it["id"]])
        for it in noted
        for subscription in wanting
        if it["id"] in bodies and _hears(subscription, it)
    ]
    rows = _new(tx, rows)
    before = _before(tx, rows)
    while rows:  # the first of each task and subscription, then the next one, which leaves after it
        layer: dict[Any, dict[str, Any]] = {}
        left = []
        for row in rows:
            place = (row["task"], row["subscription"]) if row["task"] is not None else row["key"]
            if place in layer:
                left.append(row)
            else:
                layer[place] = row | {"after": before.get(place)}
        insert_many(tx, operations, list(layer.values()))
        rows = left
        before |= _before(tx, rows)
    return len(noted) == BATCH


def _wanting(tx: Connection) -> list[RowMapping]:
    """The subscriptions that are on. One whose key was revoked is switched off now."""
    rows = tx.execute(select(subscriptions).where(subscriptions.c.disabled_at.is_(None))).mappings().all()
    gone = ownerless(tx) if rows else set()
    for row in rows:
        if row["owner"] in gone:
            switch_off(tx, row["id"], f"{row['owner']}, which has made it, was revoked.")
    return [row for row in rows if row["owner"] not in gone]


def _hears(subscription: RowMapping, announcement: RowMapping) -> bool:
    if announcement["event"] not in subscription["events"] or announcement["at"] < subscription["created_at"]:
        return False
    types = subscription["types"]
    return types is None or announcement["type"] is None or announcement["type"] in types


def _bodies(tx: Connection, noted: Sequence[RowMapping], documents: DocumentsOfMany) -> dict[int, str]:
    """What each says, by its id. One that has no body yet shows its task as it is now; gone tasks are left out."""
    bodies = {row["id"]: row["body"] for row in noted if row["body"] is not None}
    open_ = [row for row in noted if row["body"] is None]
    if open_:
        found = tx.execute(select(tasks).where(tasks.c.id.in_([row["task"] for row in open_]))).mappings().all()
        shown = {row["id"]: (row, it) for row, it in zip(found, documents(tx, list(found)), strict=True)}
        for row in open_:
            if row["task"] in shown:
                task, document = shown[row["task"]]
                bodies[row["id"]] = envelope(row["event"], task["event_seq"], document, time(row["at"])).decode()
    return bodies


def _row(announcement: RowMapping, subscription: RowMapping, body: str) -> dict[str, Any]:
    due: datetime = announcement["due_at"]
    url = subscription["url"]
    return {
        "key": f"subscription:{subscription['id']}:{announcement['event']}:{announcement['name']}",
        "task": announcement["task"],
        "task_id": announcement["task_id"],
        "phase": None,
        "lease_token": 0,
        "kind": SUBSCRIPTION,
        "target": masked(url),
        "url": url,
        "receiver": receiver(url),
        "after": None,
        "subscription": subscription["id"],
        "request_hash": request_hash(body.encode()),
        "body": body,
        "status": "reserved",
        "tries": 0,
        "next_try_at": due,
        "give_up_at": due + timedelta(seconds=GIVE_UP_AFTER),
        "created_at": announcement["at"],
    }


def _new(tx: Connection, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that were not written out before: what was said under a name is not said again."""
    by_key = {row["key"]: row for row in reversed(rows)}  # of two alike the first
    dialect = tx.dialect.name
    known = set(tx.execute(_known(dialect), listed(dialect, sorted(by_key))).scalars()) if rows else set()
    return [row for row in rows if row["key"] not in known and by_key[row["key"]] is row]


@lru_cache(maxsize=2)
def _known(dialect: str) -> Select[Any]:
    return select(operations.c.key).where(among(dialect, operations.c.key))


def _before(tx: Connection, rows: Sequence[Mapping[str, Any]]) -> dict[Any, int]:
    """For each task and subscription the last event that is still on its way. Locked until the commit, so that whoever
    closes it just now sees what is to leave after it."""
    ids = sorted({row["task"] for row in rows if row["task"] is not None})
    if not ids:
        return {}
    dialect = tx.dialect.name
    found = tx.execute(_on_their_way(dialect), listed(dialect, ids))
    return {(row.task, row.subscription): int(row.id) for row in found}


@lru_cache(maxsize=2)
def _on_their_way(dialect: str) -> Select[Any]:
    query = (
        select(operations.c.id, operations.c.task, operations.c.subscription)
        .where(among(dialect, operations.c.task), operations.c.kind == SUBSCRIPTION, operations.c.status.in_(OPEN))
        .order_by(operations.c.id)
    )
    return query.with_for_update() if dialect == "postgresql" else query
