"""What was told, as people and programs see it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from board.access.rights import Act, Actor
from board.notices import routing
from board.notices.models import notices
from board.tasks.view import time

MOST = 200


def last(connection: Connection, actor: Actor) -> list[dict[str, Any]]:
    """The latest notices by the routes that the actor may see, the newest first."""
    actor.require(Act.READ)
    mine = {row["id"]: row for row in routing.visible(connection, actor)}
    if not mine:
        return []
    query = select(notices).where(notices.c.route.in_(mine)).order_by(notices.c.created_at.desc(), notices.c.id.desc())
    keys = ("id", "route", "kind", "task_id", "status", "tries", "last_error")
    return [
        {key: row[key] for key in keys}
        | {
            "connection": mine[row["route"]]["connection"],
            "due_at": time(row["due_at"]),
            "created_at": time(row["created_at"]),
            "closed_at": time(row["closed_at"]),
        }
        for row in connection.execute(query.limit(MOST)).mappings()
    ]
