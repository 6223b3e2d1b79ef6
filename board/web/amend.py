"""Editing the output and approving it: a field for each part that may be changed, and the change before it counts."""

from __future__ import annotations

from typing import Any

from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from board.access.rights import Act
from board.review import edits, read
from board.review.decide import DecisionRefused, Verdict
from board.tasks.read import by_internal_id
from board.web import hidden, typed
from board.web.difference import changes
from board.web.forms import Form, OwnForm
from board.web.review import next_page, refused_page, row_of
from board.web.routing import PageRouter
from board.web.visit import CHANNEL, TheReader, Visit
from board.web.wording import said

router = PageRouter()
Answer = HTMLResponse | RedirectResponse


@router.show("/reviews/{review_id}/edit")
def amend_page(review_id: str, visit: TheReader, next: str = "") -> Answer:
    known = _known(visit, review_id)
    if known["row"]["status"] != "open":
        return visit.go(f"/reviews/{known['row']['id']}")
    fields = typed.fields(known["output"], known["schema"])
    return _show(visit, known, fields or [], next=next if next.isdigit() else "")


@router.act("/reviews/{review_id}/edit")
def amend(review_id: str, form: OwnForm, visit: TheReader) -> Answer:
    """`do`: preview shows what would change; approve decides. What is refused leaves the typed text in its field."""
    known = _known(visit, review_id)
    asked = typed.fields(known["output"], known["schema"]) or []
    output, seen = typed.read(form, asked, known["output"])
    changed = {name: value for name, value in output.items() if value != known["output"].get(name)}
    pinned = (form.number("version"), form.one("content_hash"))
    again: dict[str, Any] = {"next": form.one("next"), "pinned": pinned}
    if form.one("do") == "back" or any(field.problem for field in seen):
        return _show(visit, known, seen, status=422 if form.one("do") != "back" else 200, **again)
    if form.one("do") == "preview":
        return _show(visit, known, seen, changed=changed, sent=_typed(form), **again)
    verdict = Verdict(
        "approve",
        version=form.number("version") or 0,
        content_hash=form.one("content_hash"),
        reason=form.one("reason") or None,
        edits=changed or None,
    )
    row = known["row"]
    try:
        with visit.board.db.write() as tx:
            visit.board.decisions.decide(tx, row["id"], verdict, visit.actor, CHANNEL)
    except DecisionRefused as error:
        if error.code not in ("not_editable", "edit_does_not_fit"):
            return refused_page(visit, review_id, error, form)
        return _show(visit, known, seen, problem=said(visit.language, error), status=422, **again)
    return visit.go(next_page(visit, form, row["id"]))


def _known(visit: Visit, review_id: str) -> dict[str, Any]:
    """The review with the parts of its output that may be changed. 404 where there are none, or it is not open."""
    visit.actor.require(Act.REVIEW)
    row = row_of(visit, review_id)
    board = visit.board
    with board.db.read() as connection:
        task_row = by_internal_id(connection, row["task"])
        task = board.task_document(connection, task_row)
        spec = board.catalogue.version(connection, task_row["type"], task_row["type_version"]).spec
        document = read.document(connection, board.catalogue, row, task_row, task, visit.actor)
    names = edits.editable(spec, task["result"]) if spec.review.approvals == 1 else []
    if not names:
        raise HTTPException(404)
    schema = spec.handler.output_schema or {}
    rules = {name: rule for name, rule in (schema.get("properties") or {}).items() if name in names}
    return {
        "row": row,
        "document": document,
        "title": hidden.strip(task["title"], hidden.Found()) or task["task_id"],
        "output": {name: task["result"][name] for name in names},
        "schema": {"properties": rules, "required": [name for name in schema.get("required") or () if name in names]},
    }


def _typed(form: Form) -> list[tuple[str, str]]:
    return [(name, value) for name, value in form.fields if name.startswith(typed.PREFIX)]


def _show(
    visit: Visit,
    known: dict[str, Any],
    fields: list[typed.Field],
    *,
    changed: dict[str, Any] | None = None,
    sent: list[tuple[str, str]] | None = None,
    problem: str = "",
    status: int = 200,
    next: str = "",
    pinned: tuple[int | None, str] = (None, ""),
) -> HTMLResponse:
    """pinned: version and hash of the review that the reader began with; an approval counts for no other content."""
    document = known["document"]
    version, content_hash = pinned
    pins = {"version": version or document["version"], "content_hash": content_hash or document["content_hash"]}
    found = None
    if changed is not None:
        found = changes({name: known["output"].get(name) for name in changed}, changed)
    return visit.page(
        "amend.html",
        status,
        doc=document | pins,
        title=known["title"],
        fields=fields,
        changed=found,
        sent=sent or [],
        problem=problem,
        next=next,
        status="open",
    )
