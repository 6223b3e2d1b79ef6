"""Lists that somebody has saved under a name: which part of it they show, as its address says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, select, update

from board.access.errors import AccessError
from board.access.models import views
from board.db.clock import now
from board.db.insert import insert_once

REVIEWS = "reviews"  # the kind of list: the inbox
MOST = 30  # of one person and kind: more would fill the rail
LONGEST = 80  # characters of a name: the width of its column


@dataclass(frozen=True, slots=True)
class View:
    """state: the parts of the address, by their names."""

    id: int
    name: str
    state: dict[str, Any]


def of(connection: Connection, owner: str, kind: str) -> list[View]:
    """Those of one person (`Actor.identity`), oldest first."""
    query = select(views.c.id, views.c.name, views.c.state)
    query = query.where(views.c.owner == owner, views.c.kind == kind).order_by(views.c.id)
    return [View(row.id, row.name, row.state) for row in connection.execute(query)]


def save(tx: Connection, owner: str, kind: str, name: str, state: dict[str, Any]) -> None:
    """Under a name that is there already, it takes the place of what stood there. Raises AccessError."""
    name = _checked(name)
    mine = views.c.owner == owner, views.c.kind == kind
    changed = tx.execute(update(views).where(*mine, views.c.name == name).values(state=state))
    if changed.rowcount:
        return
    if tx.execute(select(func.count()).select_from(views).where(*mine)).scalar_one() >= MOST:
        raise AccessError("You have {most} saved views. Delete one first.", code="too_many_views", most=MOST)
    row = {"owner": owner, "kind": kind, "name": name, "state": state, "created_at": now()}
    insert_once(tx, views, ("owner", "kind", "name"), row)


def rename(tx: Connection, owner: str, view: int, name: str) -> None:
    """Nothing happens where it is not there, or somebody else's. Raises AccessError."""
    name = _checked(name)
    kind = select(views.c.kind).where(views.c.id == view).scalar_subquery()
    same = select(views.c.id).where(views.c.owner == owner, views.c.kind == kind, views.c.name == name)
    if tx.execute(same.where(views.c.id != view)).first() is not None:
        raise AccessError("You have a view of this name already.", code="view_exists", field="name")
    tx.execute(update(views).where(views.c.id == view, views.c.owner == owner).values(name=name))


def remove(tx: Connection, owner: str, view: int) -> None:
    """Nothing happens where it is not there, or somebody else's."""
    tx.execute(delete(views).where(views.c.id == view, views.c.owner == owner))


def _checked(name: str) -> str:
    name = " ".join(name.split())
    if not name:
        raise AccessError("Give the view a name.", code="name_missing", field="name")
    if len(name) > LONGEST:
        raise AccessError(
            "The name may have at most {most} characters.", code="name_too_long", field="name", most=LONGEST
        )
    return name
