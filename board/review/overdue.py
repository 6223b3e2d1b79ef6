"""Reviews whose time is over: what the type says becomes of a task about which nobody has decided."""

from __future__ import annotations

import logging
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, select, update

from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue
from board.db.clock import now, read_now
from board.db.engine import AWAY, Database
from board.effects import subscriptions
from board.effects.subscriptions import Event
from board.notices.kinds import Kind
from board.notices.noting import note_of
from board.review import owners
from board.review.decide import Decisions
from board.review.models import reviews
from board.review.policy import VERDICTS, Reason
from board.review.read import IS_OPEN
from board.review.visits import remind_from_now
from board.tasks.history import TIMER, record
from board.tasks.ledger import Ledger
from board.tasks.states import Move
from board.tasks.view import time

log = logging.getLogger(__name__)

# Reviews in one look; each is a transaction of its own, so that a decision meanwhile waits for one of them at most.
AT_ONCE = 200


def _due() -> Select[Any]:
    """By the index on what is open, by due time. A form of Dify's has a clock of its own (forms.look_again)."""
    return (
        select(reviews.c.id)
        .where(IS_OPEN, reviews.c.due_at <= now(), reviews.c.reason != Reason.INPUT_NEEDED)
        .order_by(reviews.c.due_at, reviews.c.id)
    )


def any_due() -> ColumnElement[bool]:
    """Whether `look` finds any."""
    return _due().limit(1).exists()


def look(db: Database, ledger: Ledger, catalogue: Catalogue, decisions: Decisions) -> int:
    """Do what the type says about each open review that is overdue; to be called by the leader. Returns how many."""
    with db.read() as connection:
        found = connection.execute(_due().limit(AT_ONCE)).scalars().all()
    count = 0
    for review in found:
        try:
            with db.write() as tx:
                count += _expire(tx, ledger, catalogue, decisions, review)
        except AWAY:
            raise
        except Exception:  # one that resists is left and said; it holds up no other
            log.exception("the overdue review %s cannot be moved on", review)
    return count


def _expire(tx: Connection, ledger: Ledger, catalogue: Catalogue, decisions: Decisions, review_id: int) -> bool:
    """Whether anything was done: somebody may have decided, or another process been here, since it was found."""
    task_id = tx.execute(select(reviews.c.task).where(reviews.c.id == review_id)).scalar()
    if task_id is None:
        return False
    task = ledger.lock(tx, task_id)
    query = select(reviews).where(reviews.c.id == review_id)
    review = tx.execute(query).mappings().one()
    if review["status"] != "open" or review["due_at"] is None or review["due_at"] > read_now(tx):
        return False
    spec = catalogue.version(tx, task["type"], task["type_version"]).spec
    details = {"review": str(review_id), "due_at": time(review["due_at"]), "on_expire": spec.review.on_expire}
    note = NOT_IN_TIME
    subscriptions.note(tx, Event.OVERDUE, f"{review_id}:{details['due_at']}", task=task)
    match _way_out(spec, review):
        case "cancel":
            ledger.move(tx, task, Move.EXPIRE, TIMER, note=note, details=details)
        case "fail":
            error = {"last_error": note, "error_class": "permanent", "error_cause": None}
            ledger.move(tx, task, Move.EXPIRE_FAILED, TIMER, changes=error, note=note, details=details)
        case "approve":
            decisions.approve_by_clock(tx, task, review, spec, note)
        case _:
            _escalate(tx, ledger, task, review, spec, details | {"to": list(owners.who_is_told(tx, spec.owner))})
    return True


def _escalate(
    tx: Connection, ledger: Ledger, task: RowMapping, review: RowMapping, spec: TypeSpec, details: dict[str, Any]
) -> None:
    """The review stays, and becomes the owner's; it is due anew, and comes back from where it was put aside."""
    again = spec.review.due or _ONE_DAY
    renewed = {"due_at": now(again), "remind_at": remind_from_now(spec), "snoozed_until": None}
    tx.execute(update(reviews).where(reviews.c.id == review["id"]).values(**renewed))
    record(tx, task["id"], "review_overdue", TIMER, note=NOT_IN_TIME, data=details)
    note_of(tx, Kind.REVIEW_OVERDUE, task["id"], details["to"])
    if spec.owner is not None:
        owners.give(tx, ledger, task, spec.owner)


NOT_IN_TIME = "Nobody decided in time."
# For a review that was due by an earlier version of its type, or by hand.
_ONE_DAY = 86_400.0


def _way_out(spec: TypeSpec, review: RowMapping) -> str:
    """What nobody can know is never settled by the clock, and an approval only where a person could give one."""
    reason = Reason(review["reason"])
    if reason is Reason.UNKNOWN_OUTCOME:
        return "escalate"
    wanted = spec.review.on_expire
    if wanted == "approve" and ("approve" not in VERDICTS[reason] or reason not in _PLAIN or review["risk"] != "low"):
        return "escalate"
    return wanted


# An output that is not whole is not approved by the clock: somebody has to have seen it.
_PLAIN = (Reason.POLICY, Reason.SAMPLE, Reason.LOW_CONFIDENCE, Reason.RISK, Reason.OUTPUT_RULE, Reason.DIRECT)
