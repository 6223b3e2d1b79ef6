"""Many low-risk reviews of one type approved at once: which may go together, and each decided on its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from board.access.rights import Actor
from board.db.engine import Database
from board.review.decide import DecisionRefused, Decisions, Verdict
from board.review.models import reviews
from board.review.policy import VERDICTS, NotEligible, Reason, may_decide
from board.tasks.models import task_data, tasks

# As many as one person can look through in a list.
MOST = 100


@dataclass(frozen=True, slots=True)
class Pin:
    """What the person saw of one review."""

    review: int
    version: int
    content_hash: str


@dataclass(frozen=True, slots=True)
class Plan:
    """together: rows of reviews that may be approved at once, with `type`, `title`, `task_id` and `payload` of their
    tasks. apart: the others, each with why: not_open, not_offered, risk, other_type, other_shape,
    not_eligible, several, too_many. pins: for each of `together` what can be seen of it now, by the review's id."""

    together: list[RowMapping]
    apart: list[tuple[RowMapping, str]]
    pins: dict[int, Pin]


@dataclass(frozen=True, slots=True)
class Report:
    """done: ids of reviews; refused: the others with the code of the refusal. repeated: those of `done` that this actor
    had approved before, just so."""

    done: list[int]
    refused: list[tuple[int, str]]
    repeated: set[int] = field(default_factory=set)


def plan(connection: Connection, decisions: Decisions, ids: Sequence[int], actor: Actor) -> Plan:
    """What this actor may approve together.

    The type and the shape of the payload (its names) are those of the first that may be approved at all. What is pinned
    is what can be seen now: the address that an action calls may have changed since the review was opened.
    """
    columns = (tasks.c.type, tasks.c.title, tasks.c.task_id, task_data.c.payload)
    query = select(reviews, *columns).join(tasks, tasks.c.id == reviews.c.task)
    query = query.join(task_data, task_data.c.task == reviews.c.task).where(reviews.c.id.in_(ids))
    found = {row["id"]: row for row in connection.execute(query).mappings()}
    made = Plan([], [], {})
    for row in (found[review] for review in dict.fromkeys(ids) if review in found):
        why = _apart(row, made.together[0] if made.together else None)
        if why is None:
            why = decisions.apart(connection, row, actor)
        if why is None and len(made.together) == MOST:
            why = "too_many"
        if why is None:
            made.together.append(row)
            made.pins[row["id"]] = Pin(row["id"], row["version"], decisions.content(connection, row["task"]))
        else:
            made.apart.append((row, why))
    return made


def _apart(row: RowMapping, first: RowMapping | None) -> str | None:
    if row["status"] != "open":
        return "not_open"
    if "approve" not in VERDICTS[Reason(row["reason"])]:
        return "not_offered"
    if row["risk"] != "low":
        return "risk"
    if first is not None and row["type"] != first["type"]:
        return "other_type"
    if first is not None and _shape(row["payload"]) != _shape(first["payload"]):
        return "other_shape"
    return None


def _shape(payload: Any) -> Any:
    return sorted(payload) if isinstance(payload, dict) else type(payload)


def approve(
    db: Database, decisions: Decisions, pins: Sequence[Pin], actor: Actor, channel: str, reason: str | None = None
) -> Report:
    """Each in a transaction of its own, with its own check of what was seen, the address of the action included: when
    that changes between two of them, the second is left as it is. reason: stands with every one. Raises NotEligible.

    What may not go together is refused here as well: the list comes from outside.
    """
    may_decide(actor)
    with db.read() as connection:
        allowed = {row["id"] for row in plan(connection, decisions, [pin.review for pin in pins], actor).together}
    report = Report([], [])
    for pin in pins:
        try:
            with db.write() as tx:
                verdict = Verdict("approve", pin.version, pin.content_hash, reason=reason)
                if pin.review not in allowed and not _is_closed(tx, pin.review):
                    raise DecisionRefused("not_together", "This review cannot be approved together with the others.")
                repeated = decisions.decide(tx, pin.review, verdict, actor, channel)
            report.done.append(pin.review)
            report.repeated.update([pin.review] if repeated else [])
        except DecisionRefused as error:
            report.refused.append((pin.review, error.code))
        except NotEligible:
            report.refused.append((pin.review, "not_eligible"))
    return report


def _is_closed(tx: Connection, review: int) -> bool:
    """Decided already: the decision itself says by whom, and whether this is a repeat of it."""
    status = tx.execute(select(reviews.c.status).where(reviews.c.id == review)).scalar()
    return status != "open"


def undo(db: Database, decisions: Decisions, ids: Sequence[int], actor: Actor, channel: str) -> Report:
    """Takes back those that still can be, each on its own. Raises NotEligible."""
    may_decide(actor)
    report = Report([], [])
    for review in ids:
        try:
            with db.write() as tx:
                decisions.undo(tx, review, actor, channel)
            report.done.append(review)
        except DecisionRefused as error:
            report.refused.append((review, error.code))
    return report


def summary(report: Report, done: str) -> str:
    """The report in one sentence, such as "47 approved, 3 changed meanwhile."; done: approved or undone."""
    counts = Counter(code for _, code in report.refused)
    parts = [f"{len(report.done)} {done}", *(f"{n} {_SHORT.get(code, code)}" for code, n in counts.most_common())]
    return ", ".join(parts) + "."


def why_apart(code: str) -> dict[str, str]:
    return {"code": code, "message": _APART[code]}


def why_refused(code: str) -> dict[str, str]:
    return {"code": code, "message": _REFUSED.get(code, "This one was refused; decide it by itself to see why.")}


_SHORT = {
    "review_changed": "changed meanwhile",
    "already_decided": "decided meanwhile",
    "not_eligible": "for others to decide",
    "not_together": "not to be approved together with the others",
    "claimed": "taken by a colleague",
    "not_found": "not found",
    "cannot_undo": "can no longer be undone",
}
_APART = {
    "not_open": "It is no longer open.",
    "not_offered": "It asks something else than an approval.",
    "risk": "Its risk is not low.",
    "other_type": "It is of another type than the first one.",
    "other_shape": "Its payload has other fields than that of the first one.",
    "not_eligible": "You may not decide it.",
    "several": "It takes more than one approval.",
    "too_many": f"Only {MOST} go together.",
    "not_found": "There is no such review.",
}
_REFUSED = {
    "review_changed": "What it is about, or where it leads, changed meanwhile. Look at it again.",
    "already_decided": "It was decided meanwhile.",
    "not_eligible": "You may not decide it.",
    "not_together": "It cannot be approved together with the others.",
    "claimed": "A colleague has taken it.",
    "not_found": "There is no such review.",
    "cannot_undo": "It can no longer be undone.",
}
