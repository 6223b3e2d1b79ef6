"""What waits for a person, and what was decided: a list beside the review that is open."""

from __future__ import annotations

from typing import Any

from fastapi.responses import HTMLResponse

from board.catalogue import store
from board.db.clock import read_now
from board.review import read
from board.web.narrowing import CHOICES, asked_of, state_of, without
from board.web.review_view import detail, just_decided, listed
from board.web.routing import PageRouter
from board.web.visit import TheReader, Visit

router = PageRouter()
# Rows of the list at once: some three screens of it, and half of the page's time and weight.
ROWS = 30


@router.show("/")
def inbox_page(visit: TheReader, cursor: str | None = None, done: str = "") -> HTMLResponse:
    return list_page(visit, "open", cursor, done)


@router.show("/snoozed")
def snoozed_page(visit: TheReader, cursor: str | None = None) -> HTMLResponse:
    return list_page(visit, "snoozed", cursor)


@router.show("/decided")
def decided_page(visit: TheReader, cursor: str | None = None) -> HTMLResponse:
    return list_page(visit, "decided", cursor)


def list_page(
    visit: Visit,
    status: str,
    cursor: str | None = None,
    done: str = "",
    *,
    selected: Any = None,
    code: int = 200,
    raw: bool = False,
    **more: Any,
) -> HTMLResponse:
    """The list, as far as the address asks for it, with one review: the selected one, or the first (which only wide
    screens show)."""
    asked = asked_of(visit.request)
    with visit.board.db.read() as connection:
        wanted = asked.wanted(connection, visit.actor, visit.board.settings.timezone)
        page = read.inbox(connection, status=status, wanted=wanted, cursor=cursor or None, limit=ROWS)
        items = listed(visit, connection, page.rows)
        shown = selected or (read.by_id(connection, page.rows[0]["id"]) if page.rows else None)
        values: dict[str, Any] = {
            "status": status,
            "items": items,
            "groups": _groups(visit, items, read_now(connection)) if status == "open" else [(None, items)],
            "next_cursor": page.next_cursor,
            "narrow": state_of(asked),
            "conditions": _conditions(state_of(asked)),
            "choices": CHOICES,
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


def _conditions(state: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Each condition of the list: its name, its value, and the list without it."""
    found = [(name, it) for name, value in state.items() for it in (value if isinstance(value, list) else [value])]
    return [(name, value, without(state, name, value)) for name, value in found]


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
