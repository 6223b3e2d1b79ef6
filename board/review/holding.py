"""What people do with a review before they decide: take it, give it back, put it aside, give its task to somebody."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, select, update

from board.access import groups, users
from board.access.rights import Act, Actor
from board.catalogue.store import Catalogue
from board.db.clock import now, read_now
from board.review import mentions, standing
from board.review.models import reviews
from board.review.verdict import DecisionRefused, holder, too_late
from board.tasks.history import record
from board.tasks.ledger import Ledger
from board.tasks.view import time

# Long enough to read and write; whoever leaves without a word keeps a colleague waiting no longer. Taking it again
# begins it anew.
LEASE = 600.0
LONGEST_SNOOZE = timedelta(days=90)


class Holding:
    def __init__(self, ledger: Ledger, catalogue: Catalogue) -> None:
        self._ledger, self._catalogue = ledger, catalogue

    def claim(
        self, tx: Connection, review_id: int, actor: Actor, channel: str, *, take_over: bool = False, note: str | None
    ) -> None:
        """Take a review for ten minutes, so that nobody else works on it. The same person again: ten more minutes.

        take_over: from whoever has it; the note stays in the history. Raises NotEligible, DecisionRefused (`claimed`).
        """
        task, review = self._open(tx, review_id, actor)
        other = holder(tx, review)
        if other not in (None, actor.identity):
            if not take_over:
                raise DecisionRefused("claimed", *_held(review))
            self._tell(tx, task, review, "review_taken_over", actor, channel, note, {"from": other})
        elif other is None:
            self._tell(tx, task, review, "review_claimed", actor, channel, note)
        _set(tx, review, claimed_by=actor.identity, claimed_until=now(LEASE))

    def renew(self, tx: Connection, review_id: int, actor: Actor) -> None:
        """Ten more minutes for whoever has it and is at work on it; nothing happens for anybody else. No event: the
        history says who has taken it."""
        his = reviews.c.id == review_id, reviews.c.claimed_by == actor.identity, reviews.c.claimed_until > now()
        tx.execute(update(reviews).where(*his, reviews.c.status == "open").values(claimed_until=now(LEASE)))

    def release(self, tx: Connection, review_id: int, actor: Actor, channel: str) -> None:
        """Give it back; nothing happens where nobody has it. Raises DecisionRefused (`claimed`): another has it."""
        task, review = self._open(tx, review_id, actor)
        other = holder(tx, review)
        if other is None:
            return
        if other != actor.identity and not actor.may(Act.ADMIN):
            raise DecisionRefused("claimed", *_held(review))
        _set(tx, review, claimed_by=None, claimed_until=None)
        self._tell(tx, task, review, "review_released", actor, channel, None)

    def snooze(self, tx: Connection, review_id: int, until: datetime | None, actor: Actor, channel: str) -> None:
        """Out of the inbox until then; None: back at once. Its due time does not wait. Raises DecisionRefused."""
        task, review = self._open(tx, review_id, actor)
        moment = read_now(tx)
        if until is not None and not moment < until <= moment + LONGEST_SNOOZE:
            text = f"until must be a time to come, at most {LONGEST_SNOOZE.days} days away."
            raise DecisionRefused("bad_time", text, [{"field": "until"}])
        _set(tx, review, snoozed_until=until)
        self._tell(tx, task, review, "review_snoozed", actor, channel, None, {"until": time(until)})

    def assign(self, tx: Connection, review_id: int, assignee: str | None, actor: Actor, channel: str) -> None:
        """Give the task to a person, a group, or nobody (None). Raises DecisionRefused (`unknown_assignee`)."""
        task, _ = self._open(tx, review_id, actor)
        name = _known(tx, assignee) if assignee else None
        if name != task["assignee"]:
            details = {"assignee": {"from": task["assignee"], "to": name}}
            changes = {"assignee": name}
            self._ledger.edit(tx, task, actor.by(channel), changes=changes, data={}, details=details, kind="assigned")

    def comment(self, tx: Connection, review_id: int, text: str, actor: Actor, channel: str) -> None:
        """A note in the history of the task, of an open review or of a decided one."""
        standing.may_speak(actor)
        task = tx.execute(select(reviews.c.task).where(reviews.c.id == review_id)).scalar()
        if task is None:
            raise DecisionRefused("not_found", "There is no such review.")
        mentions.comment(tx, task, text, actor.by(channel))

    def _open(self, tx: Connection, review_id: int, actor: Actor) -> tuple[RowMapping, RowMapping]:
        number = tx.execute(select(reviews.c.task).where(reviews.c.id == review_id)).scalar()
        if number is None:
            raise DecisionRefused("not_found", "There is no such review.")
        task = self._ledger.lock(tx, number)
        review = tx.execute(select(reviews).where(reviews.c.id == review_id)).mappings().one()
        if review["status"] != "open":
            raise too_late(review, task)
        standing.of(tx, actor, standing.question(tx, self._catalogue, task, review))
        return task, review

    @staticmethod
    def _tell(
        tx: Connection,
        task: RowMapping,
        review: RowMapping,
        kind: str,
        actor: Actor,
        channel: str,
        note: str | None,
        more: dict[str, Any] | None = None,
    ) -> None:
        details = {"review": str(review["id"])} | (more or {})
        record(tx, task["id"], kind, actor.by(channel), note=note, data=details)


def _set(tx: Connection, review: RowMapping, **values: Any) -> None:
    tx.execute(update(reviews).where(reviews.c.id == review["id"]).values(**values))


def _held(review: RowMapping) -> tuple[str, list[dict[str, Any]]]:
    by, until = review["claimed_by"], time(review["claimed_until"])
    return f"{by.split(':', 1)[1]} has taken this until {until}.", [{"by": by, "until": until}]


def _known(connection: Connection, name: str) -> str:
    """A person by mail address, or a group, as it stands in the row of the task."""
    person = users.find_by_email(connection, name.removeprefix("user:"))
    if person is not None:
        return person.email
    if name in groups.list_groups(connection):
        return name
    text = f"There is no user and no group “{name}”."
    raise DecisionRefused("unknown_assignee", text, [{"field": "assignee"}])
