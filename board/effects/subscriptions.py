"""Subscriptions: who hears of which events of all tasks. Made, listed, removed; and the one way to tell them something.

What happens to tasks is told by board.effects.announcing. Whoever has other news calls `note`.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Connection, RowMapping, func, insert, select, update
from sqlalchemy import delete as delete_from

from board.access import keys
from board.access.rights import Act, Actor
from board.db.clock import now, read_now
from board.db.engine import after_commit
from board.db.insert import insert_once
from board.db.types import dump_json
from board.effects.models import announcements, operations, subscriptions
from board.effects.operations import OPEN
from board.effects.scribe import GIVE_UP_AFTER, envelope
from board.ports import ConnectionView
from board.tasks.content import Problem
from board.tasks.view import time as written_time

MOST = 100  # subscriptions of one board; every event is written out for each that wants it
# So long a process may not know of a new subscription. Whoever makes one through the API is answered after that time:
# whatever happens after the answer is told.
KNOWN_SECONDS = 0.5
REMOVED = "The subscription was removed."


class Event(StrEnum):
    """Everything that can be subscribed to."""

    CREATED = "task.created"
    STARTED = "task.started"
    NEEDS_REVIEW = "task.needs_review"
    DONE = "task.done"
    FAILED = "task.failed"
    CANCELLED = "task.cancelled"
    DECIDED = "review.decided"
    OVERDUE = "review.overdue"
    QUEUE_ALERT = "queue.alert"
    REPORT_READY = "report.ready"


class SubscriptionRefused(Exception):
    """code: not_found, subscription_exists or too_many_subscriptions; the text is fit for a person."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Seal(Protocol):
    """board.access.crypto, as far as it is needed here."""

    def encrypt(self, text: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Wish:
    """url: where to. types: only tasks of these; None: of all. secret: signs; None: the board's own does."""

    url: str
    events: tuple[Event, ...]
    types: tuple[str, ...] | None = None
    secret: str | None = None

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(dump_json([self.url, sorted(self.events)]).encode()).hexdigest()


CheckUrl = Callable[[str, ConnectionView | None], None]


def subscribe(tx: Connection, wish: Wish, actor: Actor, vault: Seal, check_url: CheckUrl) -> tuple[RowMapping, bool]:
    """The subscription, and whether it is new. One of the same address and events gets the types and the secret of this
    wish, and is switched on again.

    Raises Forbidden, Problem naming the field, SubscriptionRefused.
    """
    actor.require(Act.READ)
    try:
        check_url(wish.url, None)
    except Exception as error:
        raise Problem("url", str(error), "address_refused") from error
    values: dict[str, Any] = {
        "types": None if wish.types is None else sorted(set(wish.types)),
        "secret": vault.encrypt(wish.secret) if wish.secret is not None else "",
        "disabled_at": None,
        "note": None,
    }
    row = values | {
        "id": "s" + secrets.token_hex(8),
        "fingerprint": wish.fingerprint,
        "url": wish.url,
        "events": [it for it in Event if it in wish.events],
        "owner": actor.identity,
        "created_at": now(),
    }
    after_commit(tx, _changed)
    room = tx.execute(select(func.count()).select_from(subscriptions)).scalar_one() < MOST
    if room and (made := insert_once(tx, subscriptions, "fingerprint", row)) is not None:
        return made, True
    found = select(subscriptions).where(subscriptions.c.fingerprint == wish.fingerprint)
    there = tx.execute(found).mappings().first()
    if there is None:
        message = f"There are {MOST} subscriptions already; remove one that nobody needs any more."
        raise SubscriptionRefused("too_many_subscriptions", message)
    if there["owner"] in ownerless(tx):
        values["owner"] = actor.identity
    elif not actor.may_manage(there["owner"]):
        message = f"{there['owner']} has subscribed this address to these events; only it or an administrator may."
        raise SubscriptionRefused("subscription_exists", message)
    changed = update(subscriptions).where(subscriptions.c.id == there["id"]).values(values).returning(subscriptions)
    return tx.execute(changed).mappings().one(), False


def ownerless(connection: Connection) -> set[str]:
    """Keys that were revoked. What they have subscribed to is told to nobody any more."""
    return {f"key:{key.name}" for key in keys.list_keys(connection) if key.revoked_at is not None}


def one(connection: Connection, subscription: str, actor: Actor) -> RowMapping:
    """Raises SubscriptionRefused for one that is not there, or is somebody else's."""
    row = connection.execute(select(subscriptions).where(subscriptions.c.id == subscription)).mappings().first()
    if row is None or not actor.may_manage(row["owner"]):
        raise SubscriptionRefused("not_found", "There is no such subscription.")
    return row


def visible(connection: Connection, actor: Actor) -> list[RowMapping]:
    """Those that the actor may manage, in the order in which they were made."""
    rows = connection.execute(select(subscriptions).order_by(subscriptions.c.created_at, subscriptions.c.id)).mappings()
    return [row for row in rows if actor.may_manage(row["owner"])]


def remove(tx: Connection, subscription: str, actor: Actor) -> None:
    """It hears of nothing any more, from now on: what waits for it is closed. Raises SubscriptionRefused."""
    row = one(tx, subscription, actor)
    tx.execute(delete_from(subscriptions).where(subscriptions.c.id == row["id"]))
    waiting = _locked(tx, row["id"], OPEN)
    tx.execute(
        update(operations)
        .where(operations.c.id.in_(waiting))
        .values(status="rejected", last_error=REMOVED, next_try_at=None, after=None, closed_at=now())
    )
    after_commit(tx, _changed)


def send_again(tx: Connection, subscription: str, actor: Actor) -> int:
    """Switch it on, and put what was given up in the last days into the outbox anew; how much that is.

    Raises SubscriptionRefused.
    """
    row = one(tx, subscription, actor)
    tx.execute(update(subscriptions).where(subscriptions.c.id == row["id"]).values(disabled_at=None, note=None))
    since = read_now(tx) - timedelta(seconds=GIVE_UP_AFTER)
    lost = _locked(tx, row["id"], ("rejected",), operations.c.closed_at >= since, operations.c.body.is_not(None))
    tx.execute(
        update(operations)
        .where(operations.c.id.in_(lost))
        .values(status="reserved", next_try_at=now(), give_up_at=now(GIVE_UP_AFTER), closed_at=None, last_error=None)
    )
    # What waits between two tries goes at once.
    due = update(operations).where(operations.c.subscription == row["id"], operations.c.status == "sent")
    tx.execute(due.where(operations.c.after.is_(None), operations.c.next_try_at > now(60)).values(next_try_at=now()))
    after_commit(tx, _changed)
    return len(lost)


def _locked(tx: Connection, subscription: str, statuses: Sequence[str], *more: Any) -> list[int]:
    """Rows of the outbox, locked in the order in which whoever closes many locks them."""
    query = (
        select(operations.c.id)
        .where(operations.c.subscription == subscription, operations.c.status.in_(statuses), *more)
        .order_by(operations.c.id)
    )
    return list(tx.execute(query.with_for_update() if tx.dialect.name == "postgresql" else query).scalars())


def switch_off(tx: Connection, subscription: str, note: str) -> None:
    """The receiver wants no more calls. It stays visible, with the reason, until somebody removes it."""
    values = {"disabled_at": now(), "note": note}
    tx.execute(update(subscriptions).where(subscriptions.c.id == subscription).values(values))
    after_commit(tx, _changed)


# -- what is said to them ---------------------------------------------------------------------------------------------


def note(
    tx: Connection,
    event: Event,
    name: str,
    *,
    task: RowMapping | None = None,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Tell every subscription of this event; it leaves after the commit.

    name: what tells it from every other one of its event, such as `2026-W48` for the report of a week; what has been
    said under a name is not said again. task: a row of `tasks` whose event it is; the body shows it as it is when it
    is written out. data: what the body says where no task is concerned, under the key `data`.
    """
    body = None
    moment = read_now(tx)
    if task is None:
        seq = int(moment.timestamp() * 1000)  # grows, as that of a task does
        body = envelope(event, seq, None, written_time(moment), data=dict(data or {})).decode()
    row = {
        "event": event,
        "type": task["type"] if task is not None else None,
        "task": task["id"] if task is not None else None,
        "task_id": task["task_id"] if task is not None else None,
        "name": name,
        "body": body,
        "at": moment,
        "due_at": moment,
    }
    tx.execute(insert(announcements), [row])


# -- the one cached look ----------------------------------------------------------------------------------------------


class _Changes:
    """How often subscriptions were changed by this process."""

    number = 0


def _changed() -> None:
    _Changes.number += 1


class _Known(NamedTuple):
    types: Mapping[str, frozenset[str] | None]  # by event: the types that somebody wants; None: all
    until: float  # of this process's monotonic clock
    change: int


class Wanted:
    """What anybody has subscribed to, as this process knows it. Costs a comparison where nobody has."""

    def __init__(self) -> None:
        self._known = _Known({}, 0.0, -1)

    def events(self, tx: Connection) -> Mapping[str, frozenset[str] | None]:
        """By event the types of tasks whose events somebody wants to hear of; None: of all."""
        known = self._known
        if known.change != _Changes.number or time.monotonic() >= known.until:
            # Both before the question: what is changed meanwhile may be missing in its answer.
            change, until = _Changes.number, time.monotonic() + KNOWN_SECONDS
            known = self._known = _Known(_wanted(tx), until, change)
        return known.types


def _wanted(tx: Connection) -> dict[str, frozenset[str] | None]:
    query = select(subscriptions.c.events, subscriptions.c.types).where(subscriptions.c.disabled_at.is_(None))
    wanted: dict[str, frozenset[str] | None] = {}
    for row in tx.execute(query):
        for event in row.events:
            former = wanted.get(event, frozenset())
            wanted[event] = None if row.types is None or former is None else former | frozenset(row.types)
    return wanted
