"""Reviews follow their task: a visit to needs_review opens one, any other way out closes it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update

from board import templating
from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue
from board.db.clock import now, read_now
from board.review import reminders
from board.review.content import content_hash
from board.review.models import reviews
from board.tasks.context import template_context
from board.tasks.ledger import Moved
from board.tasks.states import Move, Status
from board.tasks.view import data_of

# Dify looks once a minute for forms that have expired.
AFTER_EXPIRY = timedelta(seconds=90)
RISKS = ("low", "medium", "high")
_UNDONE = (Move.UNDO_APPROVE, Move.UNDO_REJECT)


class Visits:
    """A follower of the ledger."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def __call__(self, tx: Connection, moved: Moved) -> None:
        if moved.status is Status.NEEDS_REVIEW and moved.move not in _UNDONE:
            self._open(tx, moved)
        elif moved.source is Status.NEEDS_REVIEW:
            # Decided reviews are marked by the decision itself, before the move; what is still open was left.
            tx.execute(
                update(reviews)
                .where(reviews.c.task == moved.task["id"], reviews.c.status == "open")
                .values(status="closed", decided_at=now())
            )

    def _open(self, tx: Connection, moved: Moved) -> None:
        details = moved.data or {}
        task = moved.task
        spec = self._catalogue.version(tx, task["type"], task["type_version"]).spec
        data = data_of(tx, task["id"])
        tx.execute(
            insert(reviews).values(
                task=task["id"],
                reason=details["reason"],
                message=moved.note,
                status="open",
                risk=risk_of(spec, task, tx),
                lane=task["lane"],
                proposed=(data["judgement"] or {}).get("verdict"),
                round=task["round"],
                version=1,
                content_hash=content_hash(tx, self._catalogue, task, data),
                operation=details.get("operation"),
                data={"form": details["form"]} if "form" in details else None,
                due_at=_looks_again_at(tx, details["form"]) if "form" in details else due_from_now(spec),
                remind_at=None if "form" in details else remind_from_now(spec),
                opened_at=now(),
            )
        )

    def task_edited(self, tx: Connection, task: RowMapping, names: Collection[str]) -> None:
        """A task was changed while a person looks. With its payload or title it is no longer what he would decide."""
        values: dict[str, Any] = {"lane": task["lane"]}
        if {"payload", "title"} & set(names):
            values |= {"version": reviews.c.version + 1, "content_hash": content_hash(tx, self._catalogue, task)}
        query = update(reviews).where(reviews.c.task == task["id"], reviews.c.status == "open")
        tx.execute(query.values(**values))


def risk_of(spec: TypeSpec, task: RowMapping, connection: Connection) -> str:
    """The type's risk, or what its template says of this task; what it cannot say counts as high."""
    if spec.review.risk in RISKS:
        return spec.review.risk
    try:
        risk = templating.fill(spec.review.risk, template_context(task, data_of(connection, task["id"])))
    except templating.TemplateProblem:
        return "high"
    risk = str(risk).strip().lower()
    return risk if risk in RISKS else "high"


def due_from_now(spec: TypeSpec) -> Any:
    return None if spec.review.due is None else now(spec.review.due)


def remind_from_now(spec: TypeSpec) -> Any:
    """When a word reminds of it before it is due; None: never."""
    seconds = reminders.seconds(spec.review.due)
    return None if seconds is None else now(seconds)


def _looks_again_at(tx: Connection, form: dict[str, Any]) -> datetime | None:
    """When the board looks by itself what became of a form that nobody answered: a little after it has expired."""
    expires = form.get("expires_at")
    if not expires:
        return None
    return max(datetime.fromisoformat(expires) + AFTER_EXPIRY, read_now(tx) + AFTER_EXPIRY)


def open_review(connection: Connection, task: int) -> RowMapping | None:
    query = select(reviews).where(reviews.c.task == task, reviews.c.status == "open")
    return connection.execute(query).mappings().first()


def latest_review(connection: Connection, task: int) -> RowMapping | None:
    query = select(reviews).where(reviews.c.task == task).order_by(reviews.c.id.desc()).limit(1)
    return connection.execute(query).mappings().first()
