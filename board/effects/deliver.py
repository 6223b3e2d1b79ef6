"""The outbox: callbacks are written out, taken when due, sent, and closed or put off, until confirmed or given up."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, and_, bindparam, exists, func, select, text, update

from board.catalogue.store import Catalogue
from board.db.clock import now, read_now
from board.db.engine import Database
from board.db.types import UtcTime
from board.effects import fan_out
from board.effects import subscriptions as subscriptions_
from board.effects.answers import read, word
from board.effects.backoff import pause
from board.effects.calls import elsewhere, post, request_headers
from board.effects.http import Doors
from board.effects.models import BEHIND, IN_TURN, operations, subscriptions
from board.effects.operations import OPEN, Closed, Delivered, close_many, log_deliveries
from board.effects.rewrite import Rewrite
from board.effects.scribe import TAKEN_SECONDS, Scribe
from board.ports import (
    Cause,
    ConnectionView,
    ErrorClass,
    Failure,
    Http,
    Lost,
    NotSent,
    Outcome,
    Refused,
    Success,
    UnknownOutcome,
)
from board.tasks.text import clean

GONE = 410  # the receiver wants no more calls, ever
RECEIVERS = 50  # receivers looked at in one go, those whose word has waited longest first

# Every receiver with word that is due, and NOTED and ANNOUNCED where something is to be written out first. The loose
# scan jumps from one receiver to the next in ix_operations_outbox: a hundred thousand rows for one that is down cost no
# more than one.
NOTED, ANNOUNCED = "", "*"  # no receivers
_DUE = text("""
WITH RECURSIVE receivers (name) AS (
    SELECT min(receiver) FROM operations WHERE next_try_at IS NOT NULL AND after IS NULL
    UNION ALL
    SELECT (
        SELECT min(o.receiver) FROM operations AS o
        WHERE o.next_try_at IS NOT NULL AND o.after IS NULL AND o.receiver > receivers.name
    ) FROM receivers WHERE receivers.name IS NOT NULL
), due AS (
    SELECT name, (
        SELECT min(o.next_try_at) FROM operations AS o
        WHERE o.next_try_at IS NOT NULL AND o.after IS NULL AND o.receiver = receivers.name
    ) AS soonest FROM receivers WHERE name IS NOT NULL
)
SELECT name, soonest FROM due WHERE soonest <= board_now()
UNION ALL SELECT '', NULL WHERE EXISTS (SELECT 1 FROM untold)
UNION ALL SELECT '*', NULL WHERE EXISTS (SELECT 1 FROM announcements)
ORDER BY soonest
""")


@dataclass(frozen=True, slots=True)
class Due:
    """One row that is to be sent now. outdated: a later event of the same task has been sent before."""

    operation: int
    key: str
    url: str
    receiver: str
    body: bytes
    tries: int
    give_up_at: datetime
    outdated: bool
    subscription: str | None = None
    secret: str | None = None  # what signs for that subscription; None: there is none, or none any more
    connection: str | None = None
    signs_in: ConnectionView | None = None  # that connection, opened; None: there is none, or none any more


class Taken(NamedTuple):
    """What one look at the outbox found. more: there is more to be written out, so the next look should come soon."""

    rows: list[Due]
    more: bool


@dataclass(frozen=True, slots=True)
class Sent:
    """One try of one row, and what came of it. milliseconds: of the call; http_status: None without an answer."""

    due: Due
    outcome: Outcome
    http_status: int | None
    detail: str
    milliseconds: int


@dataclass(frozen=True, slots=True)
class Outbox:
    db: Database
    catalogue: Catalogue
    scribe: Scribe
    secret: str  # signs what goes to a task's callback_url
    rewrite: Rewrite = field(default_factory=Rewrite)

    def _due(self) -> list[str]:
        with self.db.read() as connection:
            return list(connection.execute(_DUE).scalars())

    def take(self, room: Callable[[str], int]) -> Taken:
        """Due rows, marked as being sent, those that waited longest first; none when nothing is due, or no room.

        room: how many rows may be taken for a receiver. Rows that another process is just taking are skipped.
        """
        names, more = self._due(), False
        if ANNOUNCED in names:
            with self.db.write() as tx:
                more = fan_out.write_some(tx, self.scribe.documents)
        if NOTED in names:
            with self.db.write() as tx:
                more = self.scribe.write_some(tx) or more
        if NOTED in names or ANNOUNCED in names:
            names = self._due()
        due = [(name, lines) for name in names if name not in (NOTED, ANNOUNCED) and (lines := room(name)) > 0]
        if not due:
            return Taken([], more)
        with self.db.write() as tx:
            outdated: dict[int, bool] = {}
            for name, lines in due[:RECEIVERS]:
                outdated |= {row.id: row.outdated for row in tx.execute(_first_of(tx, name, lines))}
            return Taken(self._opened(tx, _taken(tx, outdated)) if outdated else [], more)

    def _opened(self, tx: Connection, rows: list[Due]) -> list[Due]:
        """With the connections and the secrets that some of them need."""
        names = {due.connection for due in rows if due.connection is not None}
        opened = {name: self.catalogue.open_connection(tx, name) for name in names}
        secrets = self._secrets(tx, {due.subscription for due in rows if due.subscription is not None})
        return [
            replace(due, signs_in=opened[due.connection])
            if due.connection
            else replace(due, secret=secrets.get(due.subscription))
            if due.subscription
            else due
            for due in rows
        ]

    def _secrets(self, tx: Connection, wanted: set[str]) -> dict[str, str]:
        """What signs for these subscriptions; nothing for those that are gone or switched off."""
        if not wanted:
            return {}
        query = select(subscriptions.c.id, subscriptions.c.secret)
        rows = tx.execute(query.where(subscriptions.c.id.in_(wanted), subscriptions.c.disabled_at.is_(None))).all()
        return {row.id: self.catalogue.unseal(row.secret) if row.secret else self.secret for row in rows}

    async def send(self, due: Due, doors: Doors) -> Sent:
        """One try. The id stays, time and signature are fresh."""
        headers = request_headers(due.signs_in, due.key, due.body, due.secret or self.secret)
        if due.outdated:
            headers["x-board-outdated"] = "true"
        begun, url = time.monotonic(), self.rewrite(due.url)
        outcome: Outcome
        status: int | None = None
        try:
            answer = await post(_door(doors, due, url), url, headers, due.body)
            status, detail, outcome = answer.status, answer.text, read(answer, url)
        except NotSent as error:
            detail, outcome = str(error), Failure(ErrorClass.TRANSIENT, Cause.NETWORK, str(error))
        except Lost as error:
            detail, outcome = str(error), UnknownOutcome(str(error))
        except Refused as error:
            detail, outcome = str(error), Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error))
        return Sent(due, outcome, status, detail, int((time.monotonic() - begun) * 1000))

    def record(self, tries: Sequence[Sent]) -> bool:
        """Write what came of tries, in one transaction: closed, or put off. True when others may leave now."""
        tries = sorted(tries, key=lambda it: it.due.operation)  # two who lock many rows lock them in one order
        with self.db.write() as tx:
            moment, released = read_now(tx), 0
            closed: list[Closed] = []
            put_off: list[dict[str, Any]] = []
            for it in tries:
                wait = pause(it.outcome, it.due.tries, (it.due.give_up_at - moment).total_seconds())
                if wait is None:
                    closed.append(_closed(it))
                else:
                    at = moment + timedelta(seconds=wait)
                    put_off.append({"row": it.due.operation, "at": at, "error": _words(it.outcome)})
            close_many(tx, closed)
            for it in tries:
                if it.http_status == GONE and it.due.subscription is not None:
                    subscriptions_.switch_off(tx, it.due.subscription, _words(it.outcome))
            if closed:
                behind = BEHIND, operations.c.after.in_([it.operation for it in closed])
                released = tx.execute(update(operations).where(*behind).values(after=None)).rowcount
            if put_off:
                tx.execute(_PUT_OFF, put_off)
            log_deliveries(tx, [_logged(it) for it in tries])
        return released > 0


_PUT_OFF = (
    update(operations)
    .where(operations.c.id == bindparam("row"), operations.c.closed_at.is_(None))
    .values(next_try_at=bindparam("at", type_=UtcTime()), last_error=bindparam("error"))
)


def _door(doors: Doors, due: Due, url: str) -> Http:
    """Raises Refused where the connection is gone, or leads elsewhere by now."""
    if due.subscription is not None and due.secret is None:
        raise Refused("Nobody subscribes to this any more, or the subscription was switched off.")
    if due.connection is None:
        return doors.repeating()
    if due.signs_in is None:
        raise Refused(f"The connection “{due.connection}” does not exist any more.")
    if (words := elsewhere(due.signs_in, url)) is not None:
        raise Refused(words)
    return doors.to(due.signs_in.url)


def _first_of(tx: Connection, name: str, lines: int) -> Select[Any]:
    """The first due rows of one receiver, locked; those that somebody is just taking are skipped."""
    later = operations.alias("later")
    outdated = exists().where(
        later.c.task == operations.c.task,
        later.c.kind == operations.c.kind,
        later.c.url == operations.c.url,
        later.c.id + 0 > operations.c.id,  # + 0: found by the task, not by walking along the primary key
        later.c.tries > 0,
    )
    query = (
        select(operations.c.id, and_(operations.c.tries > 0, outdated).label("outdated"))
        .where(IN_TURN, operations.c.receiver == name, operations.c.next_try_at <= now())
        .order_by(operations.c.next_try_at, operations.c.id)
        .limit(lines)
    )
    return query.with_for_update(of=operations, skip_locked=True) if tx.dialect.name == "postgresql" else query


_SENT = ("id", "key", "url", "receiver", "body", "tries", "give_up_at", "connection", "subscription")


def _taken(tx: Connection, outdated: Mapping[int, bool]) -> list[Due]:
    rows = tx.execute(
        update(operations)
        .where(operations.c.id.in_(outdated), operations.c.status.in_(OPEN))
        .values(
            status="sent",
            tries=operations.c.tries + 1,
            sent_at=func.coalesce(operations.c.sent_at, now()),
            # A sender that dies leaves its rows to the next one after this time.
            next_try_at=now(TAKEN_SECONDS),
        )
        .returning(*(operations.c[name] for name in _SENT))
    )
    return [
        Due(
            operation=row.id,
            key=row.key,
            url=row.url,
            receiver=row.receiver,
            body=row.body.encode(),
            tries=row.tries,
            give_up_at=row.give_up_at,
            outdated=outdated[row.id],
            connection=row.connection,
            subscription=row.subscription,
        )
        for row in rows
    ]


def _closed(sent: Sent) -> Closed:
    outcome, operation = sent.outcome, sent.due.operation
    if isinstance(outcome, Success):
        return Closed(operation, "confirmed", clean(outcome.reference), None)
    words = (
        _words(outcome) if word(outcome) == "rejected" else f"Given up after {sent.due.tries} tries. {_words(outcome)}"
    )
    return Closed(operation, "rejected", None, words)


def _words(outcome: Outcome) -> str:
    return "" if isinstance(outcome, Success) else clean(outcome.message)


def _logged(sent: Sent) -> Delivered:
    return Delivered(sent.due.operation, sent.milliseconds, sent.http_status, word(sent.outcome), sent.detail)
