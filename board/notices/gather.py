"""From what was noted: for each route that hears of it one notice, due now or at the end of its quiet hours."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, RowMapping, delete, select

from board.access import groups
from board.catalogue.store import Catalogue, UnknownType
from board.db.clock import read_now
from board.db.locks import Turn, wait_for_turn
from board.db.many import insert_many
from board.notices.kinds import OF_REVIEWS, Row
from board.notices.models import noted, notices, routes
from board.notices.routing import hears, quiet_until
from board.review.models import reviews
from board.tasks.models import tasks

BATCH = 500
# So long a channel may be out before what it was to tell is too old to be worth telling.
GIVE_UP_AFTER = timedelta(days=1)


def any_noted() -> ColumnElement[bool]:
    return select(noted.c.id).exists()


def gather_some(tx: Connection, catalogue: Catalogue) -> bool:
    """Write out what was noted first. True when there may be more. One transaction at a time does this: what was noted
    goes as its notices come, so nothing is told twice and nothing is lost."""
    wait_for_turn(tx, Turn.NOTICES)
    rows = tx.execute(select(noted).order_by(noted.c.id).limit(BATCH)).mappings().all()
    if not rows:
        return False
    tx.execute(delete(noted).where(noted.c.id.in_([row["id"] for row in rows])))
    write(tx, catalogue, rows)
    return len(rows) == BATCH


def write(tx: Connection, catalogue: Catalogue, rows: Sequence[Row]) -> None:
    """rows: as of `noted`."""
    ways = tx.execute(select(routes).order_by(routes.c.id)).mappings().all()
    members = groups.list_groups(tx)
    moment = read_now(tx)
    about = _tasks(tx, [row["task"] for row in rows if row["task"] is not None])
    open_reviews = _reviews(tx, list(about))
    made = []
    for row in rows:
        task = about.get(row["task"]) if row["task"] is not None else None
        if row["task"] is not None and task is None:
            continue  # archived meanwhile
        concerned = row["audience"] or (_concerned(tx, catalogue, row["kind"], task) if task is not None else ())
        data = row["data"] or {}
        if task is not None:
            data = {"title": task["title"], "type": task["type"], "review": open_reviews.get(task["id"])}
            data["error"] = task["last_error"] if row["kind"] in ("failed", "unknown_outcome") else None
        for route in ways:
            if hears(route, row["kind"], concerned, members):
                due = quiet_until(route, moment)
                made.append(
                    {
                        "route": route["id"],
                        "key": row["key"],
                        "kind": row["kind"],
                        "task_id": task["task_id"] if task is not None else None,
                        "data": data,
                        "status": "waiting",
                        "tries": 0,
                        "due_at": due,
                        "give_up_at": due + GIVE_UP_AFTER,
                        "created_at": moment,
                    }
                )
    insert_many(tx, notices, _new(tx, made))


def _new(tx: Connection, made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what a route has been told before, or is told here already."""
    keys = {it["key"] for it in made}
    query = select(notices.c.route, notices.c.key).where(
        notices.c.route.in_({it["route"] for it in made}), notices.c.key.in_(keys)
    )
    known = {(row.route, row.key) for row in tx.execute(query)} if made else set()
    new = {(it["route"], it["key"]): it for it in made if (it["route"], it["key"]) not in known}
    return list(new.values())


def _tasks(tx: Connection, ids: Sequence[int]) -> dict[int, RowMapping]:
    if not ids:
        return {}
    return {row["id"]: row for row in tx.execute(select(tasks).where(tasks.c.id.in_(ids))).mappings()}


def _reviews(tx: Connection, ids: Sequence[int]) -> dict[int, int]:
    if not ids:
        return {}
    query = select(reviews.c.task, reviews.c.id).where(reviews.c.task.in_(ids), reviews.c.status == "open")
    return {row.task: row.id for row in tx.execute(query)}


def _concerned(tx: Connection, catalogue: Catalogue, kind: str, task: RowMapping) -> Collection[str]:
    """Those who decide about reviews; else the owner of the type, and whoever the task was given to."""
    named = {task["assignee"]} if task["assignee"] else set()
    try:
        spec = catalogue.version(tx, task["type"], task["type_version"]).spec
    except (UnknownType, ValidationError):  # removed, or written by hand; `board doctor` says so
        return named
    if kind in OF_REVIEWS:
        return named or set(spec.review.reviewers)
    return named | ({spec.owner} if spec.owner else set())
