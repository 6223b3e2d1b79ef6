"""Reading reviews: the inbox, one review with all that a decision needs, and the open review on a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, func, or_, select, text

from board.access.rights import Actor
from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue
from board.db.clock import now, read_now
from board.db.pages import DEFAULT_LIMIT, Key, Page, after, page
from board.review import approvals, standing
from board.review.content import consequence, content_hash
from board.review.filters import Wanted, conditions
from board.review.forms import form_of
from board.review.models import reviews
from board.review.policy import VERDICTS, Question, Reason
from board.review.verdict import holder
from board.tasks.models import task_data, tasks
from board.tasks.view import time

# The very text of the partial index, so that both databases can use it.
IS_OPEN = text("reviews.status = 'open'")
ALL = Wanted()

# What a list shows of a review's task.
_LISTED = (
    tasks.c.task_id,
    tasks.c.type,
    tasks.c.title,
    tasks.c.priority,
    tasks.c.source,
    tasks.c.assignee,
    tasks.c.created_at.label("task_created_at"),
    tasks.c.status.label("task_status"),
    tasks.c.type_version,
    task_data.c.judgement,
)


def open_summaries(connection: Connection, task_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The open review of each task that has one, as it stands in the task object."""
    query = select(reviews).where(reviews.c.task.in_(task_ids), IS_OPEN)
    return {row["task"]: summary(row) for row in connection.execute(query).mappings()}


def summary(row: RowMapping) -> dict[str, Any]:
    return {
        "id": str(row["id"]),
        "reason": row["reason"],
        "status": row["status"],
        "due_at": time(row["due_at"]),
        "content_hash": row["content_hash"],
        "version": row["version"],
    }


def inbox(
    connection: Connection,
    *,
    status: str = "open",
    wanted: Wanted = ALL,
    cursor: str | None = None,
    limit: int = DEFAULT_LIMIT,
) -> Page:
    """Reviews with the columns of their task that a list shows.

    Open ones: what is due first, then the highest risk, then the aged priority, then age. Decided ones: the latest
    decision first.
    """
    if status in ("open", "snoozed"):
        keys = [Key(reviews.c[name], name) for name in ("due_order", "risk_order", "lane", "id")]
        found = select(*(key.column for key in keys)).where(IS_OPEN)
    else:
        keys = [Key(reviews.c.decided_at, "decided_at", True), Key(reviews.c.id, "id", True)]
        found = select(reviews.c.id, reviews.c.decided_at).where(reviews.c.status == status)
    if wanted.asks_tasks:
        found = found.join(tasks, tasks.c.id == reviews.c.task)
    if status != "decided":
        aside = reviews.c.snoozed_until > now()
        found = found.where(aside if status == "snoozed" else _not_aside())
    found = found.where(*conditions(wanted))
    # Thousands may wait: the index of the inbox has them in its order, and what only the shown ones need is read after.
    chosen = after(found, keys, cursor, limit).subquery()
    order = [chosen.c[key.name].desc() if key.descending else chosen.c[key.name].asc() for key in keys]
    query = select(reviews, *_LISTED)
    query = query.join(chosen, chosen.c.id == reviews.c.id).join(tasks, tasks.c.id == reviews.c.task)
    query = query.join(task_data, task_data.c.task == reviews.c.task).order_by(*order)
    return page(connection.execute(query).mappings().all(), keys, limit)


def _not_aside() -> ColumnElement[bool]:
    return or_(reviews.c.snoozed_until.is_(None), reviews.c.snoozed_until <= now())


def count_open(connection: Connection) -> int:
    """Those in the inbox: without what is put aside."""
    return connection.execute(select(func.count()).select_from(reviews).where(IS_OPEN, _not_aside())).scalar_one()


def count_newer(connection: Connection, since: int, wanted: Wanted = ALL) -> int:
    """Open reviews that were asked for after the one with the id `since`, as far as a list shows them."""
    query = select(func.count()).select_from(reviews).where(IS_OPEN, reviews.c.id > since, _not_aside())
    if wanted.asks_tasks:
        query = query.join(tasks, tasks.c.id == reviews.c.task)
    return connection.execute(query.where(*conditions(wanted))).scalar_one()


def newest_open(connection: Connection) -> int | None:
    """The id of the open review that was asked for last."""
    return connection.execute(select(func.max(reviews.c.id)).where(IS_OPEN)).scalar()


def by_id(connection: Connection, review_id: int) -> RowMapping | None:
    return connection.execute(select(reviews).where(reviews.c.id == review_id)).mappings().first()


def of_operation(connection: Connection, operation: int) -> RowMapping | None:
    """The latest review that asked about this operation."""
    query = select(reviews).where(reviews.c.operation == operation).order_by(reviews.c.id.desc()).limit(1)
    return connection.execute(query).mappings().first()


def of_task(connection: Connection, task: int) -> list[RowMapping]:
    """Every review of a task, oldest first."""
    query = select(reviews).where(reviews.c.task == task).order_by(reviews.c.id)
    return list(connection.execute(query).mappings())


def instructions(connection: Connection, task: int) -> dict[int, str]:
    """What people asked for when they sent the work back, by the round that followed."""
    sent_back = [row for row in of_task(connection, task) if row["status"] == "decided" and row["verdict"] == "revise"]
    return {row["round"] + 1: row["instruction"] for row in sent_back if row["instruction"]}


def document(
    connection: Connection,
    catalogue: Catalogue,
    row: RowMapping,
    task_row: RowMapping,
    task: dict[str, Any],
    actor: Actor,
    data: Mapping[Any, Any] | None = None,
) -> dict[str, Any]:
    """A review as the contract shows it to this actor; `task` and the attempts are added by the caller.

    data: of the task, where it was read already.
    """
    spec = catalogue.version(connection, task_row["type"], task_row["type_version"]).spec
    decided = row["status"] == "decided"
    held = holder(connection, row) if row["status"] == "open" else None
    asked = standing.question(connection, catalogue, task_row, row) if row["status"] == "open" else None
    return {
        "id": str(row["id"]),
        "task_id": task_row["task_id"],
        "reason": row["reason"],
        "message": row["message"],
        "status": row["status"],
        "risk": row["risk"],
        "verdicts": list(VERDICTS[Reason(row["reason"])]) if row["status"] == "open" else [],
        **(standing.shown(connection, actor, asked) if asked else {"yours": [], "not_yours": None}),
        "reviewers": list(spec.review.reviewers),
        "approvals": _approvals(connection, spec, row, asked),
        "operation_id": str(row["operation"]) if row["operation"] else None,
        "version": row["version"],
        "content_hash": content_hash(connection, catalogue, task_row, data)
        if row["status"] == "open"
        else row["content_hash"],
        "round": row["round"],
        "max_rounds": spec.review.max_rounds,
        "due_at": time(row["due_at"]),
        "opened_at": time(row["opened_at"]),
        "claimed_by": held,
        "claimed_until": time(row["claimed_until"]) if held else None,
        "snoozed_until": time(row["snoozed_until"]),
        "aside": row["snoozed_until"] is not None and row["snoozed_until"] > read_now(connection),
        "assignee": task_row["assignee"],
        "consequence": consequence(connection, catalogue, spec),
        "task": task,
        "decision": decision(row) if decided else None,
        "form": form_of(row),
    }


def _approvals(connection: Connection, spec: TypeSpec, row: RowMapping, asked: Question | None) -> dict[str, Any]:
    """by: who has approved what can be seen now, where it takes several."""
    if spec.review.approvals == 1:
        return {"given": int(row["status"] == "decided" and row["verdict"] == "approve"), "needed": 1, "by": []}
    by = approvals.given(connection, row) if asked is None else asked.approved
    return {"given": len(by), "needed": spec.review.approvals, "by": list(by)}


def record(row: RowMapping) -> dict[str, Any]:
    """A review as it is archived with its task."""
    return {
        **summary(row),
        "message": row["message"],
        "risk": row["risk"],
        "round": row["round"],
        "operation_id": str(row["operation"]) if row["operation"] else None,
        "opened_at": time(row["opened_at"]),
        "decision": decision(row) if row["status"] == "decided" else None,
    }


def decision(row: RowMapping) -> dict[str, Any]:
    return {
        "verdict": row["verdict"],
        "by": row["decider"],
        "at": time(row["decided_at"]),
        "channel": row["channel"],
        "version": row["decided_version"],
        "instruction": row["instruction"],
        "reason": row["decision_reason"],
        "reason_class": row["reason_class"],
        "edited": sorted((row["data"] or {}).get("edits") or ()),
        "undo_until": time(row["undo_until"]),
    }
