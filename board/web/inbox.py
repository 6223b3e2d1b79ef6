"""What waits for a person, and what was decided: a list beside the review that is open."""

from __future__ import annotations

from typing import Any

from fastapi.responses import HTMLResponse

from board.catalogue import store
from board.db.clock import read_now
from board.review import read
from board.review.filters import Asked
from board.web.review_view import detail, just_decided, listed
from board.web.routing import PageRouter
from board.web.visit import TheReader, Visit

router = PageRouter()
# Rows of the list at once: some three screens of it, and half of the page's time and weight.
ROWS = 30


@router.show("/")
def inbox_page(
    visit: TheReader, type: str = "", cursor: str | None = None, done: str = "", mine: str = ""
) -> HTMLResponse:
    return list_page(visit, "open", type, cursor, done, mine=mine == "1")


@router.show("/snoozed")
def snoozed_page(visit: TheReader, type: str = "", cursor: str | None = None) -> HTMLResponse:
    return list_page(visit, "snoozed", type, cursor)


@router.show("/decided")
def decided_page(visit: TheReader, type: str = "", cursor: str | None = None) -> HTMLResponse:
    return list_page(visit, "decided", type, cursor)


def list_page(
    visit: Visit,
    status: str,
    type: str = "",
    cursor: str | None = None,
    done: str = "",
    *,
    selected: Any = None,
    code: int = 200,
    raw: bool = False,
    mine: bool = False,
    **more: Any,
) -> HTMLResponse:
    """The list with one review: the selected one, or the first (which only wide screens show).

    mine: only of tasks that are assigned to the reader.
    """
    with visit.board.db.read() as connection:
        asked = Asked(type=(type,) if type else (), mine=mine)
        wanted = asked.wanted(connection, visit.actor, visit.board.settings.timezone)
        page = read.inbox(connection, status=status, wanted=wanted, cursor=cursor or None, limit=ROWS)
        items = listed(visit, connection, page.rows)
        shown = selected or (read.by_id(connection, page.rows[0]["id"]) if page.rows else None)
        values: dict[str, Any] = {
            "status": status,
            "items": items,
            "groups": _groups(visit, items, read_now(connection)) if status == "open" else [(None, items)],
            "next_cursor": page.next_cursor,
            "type": type,
            "mine": mine,
            "types": [row["name"] for row in store.list_types(connection)],
            "selected": selected is not None,
            "review": detail(visit, connection, shown, raw=raw) if shown is not None else None,
            "next": _following(page.rows, shown),
            "newest": read.newest_open(connection),
            "toast": just_decided(visit, connection, done),
            "last": _last_decision(visit, connection) if not items else None,
            "refused": None,
            "draft": {},
            "tried": "",
        }
    return visit.page("inbox.html", code, **(values | more))


def _groups(visit: Visit, items: list[dict[str, Any]], moment: Any) -> list[tuple[str | None, list[dict[str, Any]]]]:
    """The list in its order, under the heads overdue, today and rest; without heads where nothing is due."""
    today = visit.language.day(moment)
    groups: dict[str, list[dict[str, Any]]] = {"overdue": [], "today": [], "rest": []}
    for item in items:
        due = item["due_at"]
        if due is not None and due <= moment:
            groups["overdue"].append(item)
        elif due is not None and visit.language.day(due) == today:
            groups["today"].append(item)
        else:
            groups["rest"].append(item)
    filled = [(name, members) for name, members in groups.items() if members]
    return [(None, items)] if [name for name, _ in filled] == ["rest"] else list(filled)


def _following(rows: list[Any], shown: Any) -> int | None:
    """The review after this one in the list, or the first where the list ends."""
    ids = [row["id"] for row in rows]
    if shown is None or shown["id"] not in ids:
        return ids[0] if ids else None
    others = ids[ids.index(shown["id"]) + 1 :] + ids[: ids.index(shown["id"])]
    return others[0] if others else None


def _last_decision(visit: Visit, connection: Any) -> dict[str, Any] | None:
    rows = read.inbox(connection, status="decided", limit=1).rows
    return listed(visit, connection, rows)[0] if rows else None
