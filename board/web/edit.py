"""Correcting the payload of a task: a field for each value, or JSON; what changes is shown before it is written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from fastapi.responses import HTMLResponse, RedirectResponse

from board.access.rights import Act
from board.review.decide import DecisionRefused, Verdict
from board.tasks import edit, requeue, text
from board.tasks.intake import Problem
from board.tasks.ledger import Stale
from board.tasks.states import IllegalMove, Status
from board.tasks.visible import visible
from board.web import typed
from board.web.difference import Change, changes
from board.web.forms import Form, OwnForm
from board.web.routing import PageRouter
from board.web.visit import CHANNEL, TheReader, Visit
from board.web.wording import N_, NOT_JSON, said

router = PageRouter()
Answer = HTMLResponse | RedirectResponse
_NO_OBJECT = N_("The payload must be a JSON object, in braces.")
_FIELDS_WRONG = N_("Some fields cannot be read; they say why.")
# What the work is told when it runs again because of a correction.
_CORRECTED = "The input was corrected."


@dataclass(slots=True)
class Page:
    """What the page shows. fields: None as JSON. changed: None before anybody has asked for it."""

    payload: str
    fields: list[typed.Field] | None
    problem: str = ""
    status: int = 200
    changed: list[Change] | None = None
    sent: list[tuple[str, str]] = field(default_factory=list)


@router.show("/tasks/{task_id}/edit")
def edit_page(task_id: str, visit: TheReader, how: str = "") -> Answer:
    document, schema = _task(visit, task_id)
    fields = None if how == "json" else typed.fields(document["payload"], schema) or None
    return _show(visit, document, Page(_pretty(document["payload"]), fields))


@router.act("/tasks/{task_id}/edit")
def save(task_id: str, form: OwnForm, visit: TheReader) -> Answer:
    """`do`: preview shows what would change; run writes it and lets the work begin anew; else it is written.

    Whatever is refused leaves the typed text in its field.
    """
    document, schema = _task(visit, task_id)
    payload, page = _read(visit, form, document, schema)
    do = form.one("do")
    if payload is None or do == "again":
        return _show(visit, document, page)
    if do == "preview":
        page.changed = changes(document["payload"], payload)
        page.sent = [(name, value) for name, value in form.fields if name == "payload" or name.startswith(typed.PREFIX)]
        return _show(visit, document, page)
    try:
        _write(visit, task_id, edit.TaskEdit(version=form.number("version") or 0, payload=payload), run=do == "run")
    except Problem as error:
        page.problem, page.status = said(visit.language, error), 422
    except (Stale, IllegalMove, DecisionRefused) as error:
        page.problem, page.status = said(visit.language, error), 409
    else:
        return visit.go(f"/tasks/{quote(task_id, safe='')}", note="saved_and_run" if do == "run" else "saved")
    return _show(visit, _task(visit, task_id)[0], page)


def _write(visit: Visit, task_id: str, change: edit.TaskEdit, *, run: bool) -> None:
    """Both or neither. Where a person was asked, running again is a revision: it costs a round."""
    board = visit.board
    with board.db.write() as tx:
        row = visible(tx, visit.actor, task_id, Act.OPERATE)
        by = visit.actor.by(CHANNEL)
        edit.apply(tx, board.ledger, board.catalogue, board.files, board.visits.task_edited, row["id"], change, by)
        if not run:
            return
        review = board.task_document(tx, visible(tx, visit.actor, task_id))["review"]
        if review is None:
            requeue.requeue(tx, board.ledger, board.catalogue, row["id"], by, reason=_CORRECTED, from_work=True)
        else:
            verdict = Verdict("revise", review["version"], review["content_hash"], instruction=_CORRECTED)
            board.decisions.decide(tx, int(review["id"]), verdict, visit.actor, CHANNEL)


def _task(visit: Visit, task_id: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The task on the wire, and the schema of its payload."""
    with visit.board.db.read() as connection:
        row = visible(connection, visit.actor, task_id, Act.OPERATE)
        document = visit.board.task_document(connection, row)
        spec = visit.board.catalogue.version(connection, row["type"], row["type_version"]).spec
    return document, spec.payload_schema


def _read(
    visit: Visit, form: Form, document: dict[str, Any], schema: dict[str, Any] | None
) -> tuple[dict[str, Any] | None, Page]:
    """The payload that was typed (None where it cannot be read), and the page as it stands with it."""
    asked = typed.fields(document["payload"], schema)
    raw = form.raw("payload")
    if raw or asked is None or not any(name.startswith(typed.PREFIX) for name, _ in form.fields):
        page = Page(raw, None)
        try:
            payload = text.parse(raw.encode())
            if isinstance(payload, dict):
                return payload, page
            problem = visit.gettext(_NO_OBJECT)
        except (text.NotJson, text.BadJson) as error:
            problem = str(error)
        page.problem, page.status = visit.gettext(NOT_JSON).format(problem=problem), 422
        return None, page
    payload, seen = typed.read(form, asked, document["payload"])
    page = Page("", seen)
    if any(it.problem for it in seen):
        page.problem, page.status = visit.gettext(_FIELDS_WRONG), 422
        return None, page
    return payload, page


def _show(visit: Visit, task: dict[str, Any], page: Page) -> HTMLResponse:
    status = Status(task["status"])
    may_run = status is Status.FAILED or (status is Status.NEEDS_REVIEW and visit.may(Act.REVIEW))
    open_now = status in edit.PAYLOAD_OPEN
    return visit.page("edit.html", page.status, task=task, page=page, open_now=open_now, may_run=may_run)


def _pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
