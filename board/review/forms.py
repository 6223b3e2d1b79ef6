"""Answers to the form that a task's work waits with outside: checked at the door, kept, handed to the next attempt."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, RowMapping, select, update

from board.db.clock import now
from board.ports import FormAnswer
from board.review.models import reviews
from board.review.policy import Reason
from board.tasks.history import TIMER
from board.tasks.ledger import Ledger
from board.tasks.states import Move, Status

if TYPE_CHECKING:
    from board.review.decide import Verdict

MOST_TEXT = 100_000  # characters of one field; a variable in Dify holds at most 200 KB
AT_ONCE = 100  # expired forms looked at in one go


class BadAnswer(Exception):
    """The answer does not fit the form. field: which part; the text is a plain sentence."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def form_of(review: RowMapping) -> dict[str, Any] | None:
    """The form that a review shows; None for other reviews."""
    form: dict[str, Any] | None = (review["data"] or {}).get("form")
    return form


def check(form: Mapping[str, Any], action: str | None, inputs: Mapping[str, Any]) -> None:
    """Raise BadAnswer for what the form does not offer, or where something is missing."""
    offered = [it["id"] for it in form["actions"]]
    if action not in offered:
        raise BadAnswer("action", f"action must be one of {', '.join(offered)}.")
    names = [it["name"] for it in form["fields"]]
    for name in inputs:
        if name not in names:
            raise BadAnswer(f"inputs.{name}", f"The form has no field “{name}”; it has: {', '.join(names) or 'none'}.")
    for field in form["fields"]:
        _check_field(field, inputs.get(field["name"]))


def _check_field(field: Mapping[str, Any], value: Any) -> None:
    path = f"inputs.{field['name']}"
    if value is None or value in ("", []):
        raise BadAnswer(path, f"“{field['name']}” is missing; the form wants every field.")
    if field["kind"] in ("text", "choice") and not isinstance(value, str):
        raise BadAnswer(path, f"“{field['name']}” must be a text.")
    texts = value if isinstance(value, list) else [value]
    if any(len(it) > MOST_TEXT for it in texts if isinstance(it, str)):
        raise BadAnswer(path, f"“{field['name']}” is longer than {MOST_TEXT} characters.")
    if field["kind"] == "choice" and field["options"] and value not in field["options"]:
        raise BadAnswer(path, f"“{field['name']}” must be one of {', '.join(field['options'])}.")


def keep(tx: Connection, review: RowMapping, verdict: Verdict) -> None:
    """Store the answer with its review."""
    answer = {"action": verdict.action, "inputs": verdict.inputs or {}}
    tx.execute(update(reviews).where(reviews.c.id == review["id"]).values(data=review["data"] | {"answer": answer}))


def answers(connection: Connection, task_ids: Collection[int]) -> dict[int, FormAnswer]:
    """For each of these tasks whose last form was answered, the answer."""
    if not task_ids:
        return {}
    # Tasks whose call is open are few, and so are their reviews: ix_reviews_task.
    query = (
        select(reviews.c.task, reviews.c.data)
        .where(reviews.c.task.in_(task_ids), reviews.c.reason == Reason.INPUT_NEEDED)
        .order_by(reviews.c.id)
    )
    found: dict[int, FormAnswer] = {}
    for task, data in connection.execute(query):
        found.pop(task, None)  # only the last one counts
        if (answer := data.get("answer")) is not None:
            found[task] = FormAnswer(data["form"]["id"], answer["action"], answer["inputs"])
    return found


def left_at(connection: Connection, task: int) -> Any:
    """When the task last went on after a form, or None."""
    query = select(reviews.c.decided_at).where(reviews.c.task == task, reviews.c.reason == Reason.INPUT_NEEDED)
    return connection.execute(query.order_by(reviews.c.id.desc()).limit(1)).scalar()


def undo_left(connection: Connection, task: int) -> float:
    """The seconds in which the last decision about the task may still be taken back."""
    query = select(reviews.c.undo_until, now()).where(reviews.c.task == task, reviews.c.undo_until > now())
    found = connection.execute(query.order_by(reviews.c.id.desc()).limit(1)).first()
    return 0.0 if found is None else float((found[0] - found[1]).total_seconds())


def look_again(tx: Connection, ledger: Ledger) -> int:
    """Let tasks go on whose form has expired unanswered; to be called by the leader. Returns how many."""
    due = (
        select(reviews.c.task)
        .where(reviews.c.status == "open", reviews.c.reason == Reason.INPUT_NEEDED, reviews.c.due_at <= now())
        .order_by(reviews.c.due_at)
        .limit(AT_ONCE)
    )
    count = 0
    for number in tx.execute(due).scalars().all():
        task = ledger.lock(tx, number)
        if task["status"] == Status.NEEDS_REVIEW:
            note = "The form has expired; the board looks what became of it."
            ledger.move(tx, task, Move.ANSWER, TIMER, changes={"ready_at": now()}, note=note)
            count += 1
    return count
