"""Sends notices: what a route is to tell leaves as one message, at most one a minute, and never twice.

A message is taken in a transaction before it is sent. A process that dies in between leaves it as `sending`: whether it
arrived is unknown, and nobody is told twice; only a webhook is called again, under the same webhook-id.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, delete, func, or_, select, update

from board.access import users
from board.access.errors import AccessError
from board.catalogue.models import connections
from board.catalogue.store import Catalogue
from board.db.clock import now, read_now
from board.db.engine import Database
from board.db.locks import Turn, wait_for_turn
from board.effects.http import Doors
from board.logs import first_line
from board.notices import gather, wording
from board.notices.kinds import OF_REVIEWS
from board.notices.models import SENDING, WAITING, notices, routes
from board.ports import (
    Cause,
    ConnectionView,
    ErrorClass,
    Failure,
    Message,
    Notifier,
    Success,
    Told,
    UnknownOutcome,
)
from board.review.links import Links
from board.review.policy import NotEligible
from board.review.verdict import DecisionRefused

log = logging.getLogger(__name__)

PAUSE = 60.0  # seconds between two messages of one route: what happens meanwhile is told together
LOST_SECONDS = 300.0  # a message that was taken so long ago was left by a process that is gone
BACKOFF = (10.0, 60.0, 300.0, 1800.0)  # seconds until the next try; the last one again and again, for a day
AT_ONCE = 20  # messages that leave side by side
KEPT_DAYS = 30.0
_WAITING = and_(WAITING, notices.c.due_at <= now())


@dataclass(frozen=True, slots=True)
class Due:
    """A message to be sent now, with all that it needs. connection: None where there is none of that name any more."""

    message: Message
    rows: Sequence[RowMapping]
    notifier: Notifier | None
    connection: ConnectionView | None


class Notices:
    """What the leader does about notices. allow: private addresses, as `BOARD_ALLOW_PRIVATE_TARGETS` says."""

    def __init__(
        self,
        db: Database,
        catalogue: Catalogue,
        notifiers: Mapping[str, Notifier],
        allow: Sequence[str],
        public_url: str,
        links: Links,
    ) -> None:
        self._db, self._catalogue, self._notifiers = db, catalogue, notifiers
        self._allow, self._public_url, self._links = allow, public_url, links

    def look(self) -> int:
        """Write out what was noted and send what is due; how many messages were sent. Blocks; for a thread."""
        more = True
        while more:
            with self._db.write() as tx:
                more = gather.gather_some(tx, self._catalogue)
        with self._db.read() as connection:
            if not connection.execute(select(any_due())).scalar():
                return 0
        with self._db.write() as tx:
            due = self._take(tx)
        if due:
            asyncio.run(self._send(due))
        return len(due)

    def forget(self) -> None:
        with self._db.write() as tx:
            tx.execute(
                delete(notices).where(notices.c.created_at < now(-86_400.0 * KEPT_DAYS), notices.c.status != "sending")
            )

    def _take(self, tx: Connection) -> list[Due]:
        wait_for_turn(tx, Turn.NOTICES)
        moment = read_now(tx)
        self._find_lost(tx)
        last_minute = now(-60.0)
        used: Counter[str] = Counter()
        query = select(routes.c.connection, func.count()).where(routes.c.told_at > last_minute)
        used.update({row[0]: row[1] for row in tx.execute(query.group_by(routes.c.connection))})
        waiting = select(notices.c.route).where(_WAITING).distinct()
        free = or_(routes.c.told_at.is_(None), routes.c.told_at <= now(-PAUSE))
        found = tx.execute(
            select(routes).where(routes.c.id.in_(waiting), free).order_by(routes.c.told_at.nulls_first())
        )
        taken = []
        for route in found.mappings().all():
            connection = self._catalogue.open_connection(tx, route["connection"])
            notifier = self._notifiers.get(connection.kind) if connection is not None else None
            if notifier is not None and used[route["connection"]] >= notifier.per_minute:
                continue
            used[route["connection"]] += 1
            taken.append(self._message(tx, route, notifier, connection, moment))
            if len(taken) == AT_ONCE:
                break
        return taken

    def _message(
        self,
        tx: Connection,
        route: RowMapping,
        notifier: Notifier | None,
        connection: ConnectionView | None,
        moment: datetime,
    ) -> Due:
        """All that is due, or a message that was tried before, as it was."""
        mine = and_(notices.c.route == route["id"], _WAITING)
        former = tx.execute(
            select(notices.c.message).where(mine, notices.c.message.is_not(None)).order_by(notices.c.id).limit(1)
        ).scalar()
        name = former or "n" + secrets.token_hex(12)
        which = notices.c.message == former if former else notices.c.message.is_(None)
        rows = tx.execute(
            update(notices)
            .where(mine, which)
            .values(status="sending", message=name, taken_at=moment, tries=notices.c.tries + 1)
            .returning(notices)
        ).mappings()
        told = sorted(rows, key=lambda row: int(row["id"]))
        tx.execute(update(routes).where(routes.c.id == route["id"]).values(told_at=moment))
        link = self._link(tx, route, told)
        return Due(wording.compose(name, told, route, self._public_url, link), told, notifier, connection)

    def _link(self, tx: Connection, route: RowMapping, told: Sequence[RowMapping]) -> str | None:
        """A review opens without a sign-in for the one person whose own mailbox it is sent to, if that person may
        decide it. It only shows; nothing is decided by opening it."""
        review = told[0]["data"].get("review")
        if len(told) > 1 or told[0]["kind"] not in OF_REVIEWS or review is None:
            return None
        person = users.find_by_email(tx, route["address"]) if route["address"] == route["audience"] else None
        if person is None:
            return None
        try:
            return self._links.issue(tx, review, person.id).url
        except (
            DecisionRefused,
            NotEligible,
            AccessError,
        ):  # decided meanwhile, or not for this person
            return None

    @staticmethod
    def _find_lost(tx: Connection) -> None:
        lost = and_(SENDING, notices.c.taken_at < now(-LOST_SECONDS))
        webhooks = select(routes.c.id).where(routes.c.connection.in_(_webhooks()))
        tx.execute(update(notices).where(lost, notices.c.route.in_(webhooks)).values(status="waiting"))
        words = "The process that sent it is gone; whether it arrived is not known, and it is not sent again."
        tx.execute(update(notices).where(lost).values(status="unknown", closed_at=now(), last_error=words))

    async def _send(self, due: Sequence[Due]) -> None:
        doors = Doors(self._allow)
        try:
            await asyncio.gather(*(self._one(it, doors) for it in due))
        finally:
            await doors.close()

    async def _one(self, due: Due, doors: Doors) -> None:
        told: Told
        if due.notifier is None or due.connection is None:
            words = "Its connection is gone, or of a kind by which nobody can be told."
            told = Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, words)
        else:
            try:
                told = await due.notifier.send(due.connection, due.message, doors.to(due.connection.url))
            except Exception as error:
                log.error("a notice by %s was not sent: %s", due.connection.name, first_line(error))
                told = UnknownOutcome(f"Something unforeseen: {type(error).__name__}.")
        await asyncio.to_thread(self._record, due, told)

    def _record(self, due: Due, told: Told) -> None:
        with self._db.write() as tx:
            moment = read_now(tx)
            mine = (notices.c.message == due.message.id) & (notices.c.status == "sending")
            tx.execute(update(notices).where(mine).values(**_became(due, told, moment)))


def _became(due: Due, told: Told, moment: datetime) -> dict[str, Any]:
    closed = {"closed_at": moment}
    if isinstance(told, Success):
        return closed | {"status": "sent", "last_error": None}
    error = {"last_error": told.message[:500]}
    again = due.connection is not None and due.connection.kind == "webhook"
    if isinstance(told, UnknownOutcome) and not again:
        return closed | error | {"status": "unknown"}
    if isinstance(told, Failure) and told.error_class is ErrorClass.PERMANENT:
        return closed | error | {"status": "failed"}
    pause = BACKOFF[min(due.rows[0]["tries"], len(BACKOFF)) - 1]
    if isinstance(told, Failure) and told.retry_after:
        pause = max(pause, told.retry_after)
    at = moment + timedelta(seconds=pause)
    if at > due.rows[0]["give_up_at"]:
        return closed | error | {"status": "failed"}
    return error | {"status": "waiting", "due_at": at}


def _webhooks() -> Select[Any]:
    return select(connections.c.name).where(connections.c.kind == "webhook")


def any_due() -> ColumnElement[bool]:
    """Whether a message is to be sent or to be given up; both by small partial indexes."""
    lost = select(notices.c.id).where(SENDING, notices.c.taken_at < now(-LOST_SECONDS))
    free = or_(routes.c.told_at.is_(None), routes.c.told_at <= now(-PAUSE))
    waiting = select(notices.c.id).join(routes, routes.c.id == notices.c.route).where(_WAITING, free)
    return or_(waiting.exists(), lost.exists())
