"""Approving many reviews at once: first the list of what would be approved, then the report of what was."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import HTMLResponse, RedirectResponse

from board.access.rights import Act
from board.review import bulk, follows, read
from board.review.content import consequence
from board.tasks.read import by_internal_id
from board.web import hidden
from board.web.forms import OwnForm
from board.web.review_view import consequence_shown
from board.web.routing import PageRouter
from board.web.visit import CHANNEL, TheReader, Visit

router = PageRouter()
Answer = HTMLResponse | RedirectResponse
_LONGEST = 120  # characters of one value in the list


@router.show("/bulk")
def preview(visit: TheReader, r: Annotated[list[str] | None, Query()] = None) -> Answer:
    """Every review that would be approved with where it leads, and every other with why not."""
    visit.actor.require(Act.REVIEW)
    ids = _numbers(r or [])
    if not ids:
        return visit.go("/", note="none_selected")
    with visit.board.db.read() as connection:
        plan = bulk.plan(connection, visit.board.decisions, ids, visit.actor)
        together = [_line(visit, connection, row, plan.pins[row["id"]]) for row in plan.together]
        apart = [(_line(visit, connection, row), why) for row, why in plan.apart]
    return visit.page("bulk.html", together=together, apart=apart, report=None, most=bulk.MOST)


@router.act("/bulk")
def approve(form: OwnForm, visit: TheReader) -> Answer:
    board = visit.board
    pins = [pin for text in form.many("pin") if (pin := _pin(text))][: bulk.MOST]
    if not pins:
        return visit.go("/", note="none_selected")
    return _report(visit, bulk.approve(board.db, board.decisions, pins, visit.actor, CHANNEL), "approved")


@router.act("/bulk/undo")
def undo(form: OwnForm, visit: TheReader) -> Answer:
    board = visit.board
    ids = _numbers(form.many("r"))[: bulk.MOST]
    return _report(visit, bulk.undo(board.db, board.decisions, ids, visit.actor, CHANNEL), "undone")


def _report(visit: Visit, found: bulk.Report, what: str) -> HTMLResponse:
    with visit.board.db.read() as connection:
        named = {review: _named(connection, review) for review in (*found.done, *(it for it, _ in found.refused))}
    report = {
        "what": what,
        "done": [(review, named[review]) for review in found.done],
        "refused": [(review, named[review], code) for review, code in found.refused],
    }
    return visit.page("bulk.html", together=[], apart=[], report=report, most=bulk.MOST)


def _line(visit: Visit, connection: Any, row: Any, pin: bulk.Pin | None = None) -> dict[str, Any]:
    """One review with what its approval does: the target, and what of it stands in the payload."""
    board = visit.board
    task_row = by_internal_id(connection, row["task"])
    spec = board.catalogue.version(connection, task_row["type"], task_row["type_version"]).spec
    leads = consequence_shown(consequence(connection, board.catalogue, spec), task_row["callback_url"])
    given = [it for it in follows.given(connection, spec, task_row) if not it.by_ai and isinstance(it.value, str)]
    return {
        "id": row["id"],
        "pin": f"{pin.review}:{pin.version}:{pin.content_hash}" if pin else "",
        "title": _title(row),
        "type": row["type"],
        "consequence": leads,
        "given": [(it.name, hidden.strip(it.value, hidden.Found())[:_LONGEST]) for it in given],
    }


def _title(row: Any) -> str:
    return hidden.strip(row["title"], hidden.Found()) or str(row["task_id"])


def _named(connection: Any, review: int) -> str:
    row = read.by_id(connection, review)
    return str(review) if row is None else _title(by_internal_id(connection, row["task"]))


def _numbers(texts: list[str]) -> list[int]:
    return [int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 19]


def _pin(text: str) -> bulk.Pin | None:
    review, _, rest = text.partition(":")
    version, _, content_hash = rest.partition(":")
    numbers = _numbers([review, version])
    return bulk.Pin(numbers[0], numbers[1], content_hash) if len(numbers) == 2 and content_hash else None
