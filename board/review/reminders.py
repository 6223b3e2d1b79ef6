"""A word before a review is due, once: to whoever has it, else to those who may decide."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, select, update

from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue
from board.db.clock import now, read_now
from board.db.engine import AWAY, Database
from board.notices.kinds import Kind
from board.notices.noting import note_of
from board.review.models import REMINDED, reviews
from board.review.verdict import holder
from board.tasks.history import TIMER, record
from board.tasks.ledger import Ledger
from board.tasks.view import time

log = logging.getLogger(__name__)

# So much of the time until it is due has passed: of four hours, 48 minutes are left.
AFTER = 0.8
# A review that is due sooner is not worth a word of its own; the word that it is overdue comes soon enough.
SHORTEST = 300.0
AT_ONCE = 200  # reviews in one look; each is a transaction of its own


def seconds(due: float | None) -> float | None:
    """How long after a review is opened, or due anew, its reminder is due; None: it gets none. due: seconds."""
    return None if due is None or due < SHORTEST else due * AFTER


def _due() -> Select[Any]:
    """By an index of its own on the few that still get a reminder."""
    return select(reviews.c.id).where(REMINDED, reviews.c.remind_at <= now()).order_by(reviews.c.remind_at)


def any_due() -> ColumnElement[bool]:
    """Whether `look` finds any."""
    return _due().limit(1).exists()


def look(db: Database, ledger: Ledger, catalogue: Catalogue) -> int:
    """Remind of each open review whose time has come; to be called by the leader. Returns of how many."""
    with db.read() as connection:
        found = connection.execute(_due().limit(AT_ONCE)).scalars().all()
    count = 0
    for review in found:
        try:
            with db.write() as tx:
                count += _remind(tx, ledger, catalogue, review)
        except AWAY:
            raise
        except Exception:  # one that resists is left and said; it holds up no other
            log.exception("nobody can be reminded of the review %s", review)
    return count


def _remind(tx: Connection, ledger: Ledger, catalogue: Catalogue, review_id: int) -> bool:
    """Whether a word was said: somebody may have decided, or another process been here, since it was found."""
    task_id = tx.execute(select(reviews.c.task).where(reviews.c.id == review_id)).scalar()
    if task_id is None:
        return False
    task = ledger.lock(tx, task_id)
    mine = update(reviews).where(reviews.c.id == review_id, REMINDED, reviews.c.remind_at <= now())
    review = tx.execute(mine.values(remind_at=None).returning(reviews)).mappings().first()
    if review is None:
        return False
    if review["due_at"] is None or review["due_at"] <= read_now(tx):
        return False  # too late for it, after a pause or a leap of the clock: that it is overdue is said elsewhere
    spec = catalogue.version(tx, task["type"], task["type_version"]).spec
    details: dict[str, Any] = {
        "review": str(review_id),
        "due_at": time(review["due_at"]),
        "to": list(_whom(tx, task, review, spec)),
    }
    record(tx, task["id"], "review_reminder", TIMER, data=details)
    note_of(tx, Kind.REVIEW_REMINDER, task["id"], details["to"])
    return True


def _whom(tx: Connection, task: RowMapping, review: RowMapping, spec: TypeSpec) -> Sequence[str]:
    """Whoever has it taken, else whom it is assigned to, else those whom the type names; empty: every reviewer."""
    if taken_by := holder(tx, review):
        return [taken_by.removeprefix("user:")]
    return [task["assignee"]] if task["assignee"] else list(spec.review.reviewers)
