"""Calls to other systems: what is in question, what is known of each, and a person's word about it."""

from __future__ import annotations

import json
from typing import Any

from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from board.access.rights import Act
from board.db.clock import read_now
from board.effects import journal, listing, operations
from board.effects.listing import Filter
from board.effects.resend import NotResendable, may_resend, resend
from board.effects.steps import NoSuchOperation
from board.effects.view import entry_document, operation_document, try_document
from board.review.decide import DecisionRefused, Verdict
from board.review.policy import NotEligible
from board.review.resolve import answerable
from board.review.visits import open_review
from board.tasks import text
from board.tasks.read import attempt_document, attempts_of, by_internal_id
from board.tasks.states import Phase, Status
from board.web import hidden
from board.web.forms import Form, OwnForm
from board.web.routing import PageRouter
from board.web.tree import Node, tree
from board.web.visit import CHANNEL, TheReader, Visit
from board.web.wording import NOT_JSON, refusal, said

router = PageRouter()
Answer = HTMLResponse | RedirectResponse

# What the list shows, by the name of its tab.
TABS: dict[str, Filter] = {
    "question": Filter(in_question=True),
    "open": Filter(statuses=("reserved", "sent")),
    "rejected": Filter(statuses=("rejected",)),
    "confirmed": Filter(statuses=("confirmed",)),
    "all": Filter(),
}
ANSWERS = ("happened", "not_happened", "drop")
_LONGEST = 10_000  # characters of a reason, as in the API


@router.show("/operations")
def list_page(visit: TheReader, show: str = "question", cursor: str | None = None) -> Answer:
    show = show if show in TABS else "question"
    with visit.board.db.read() as connection:
        page = listing.found(connection, TABS[show], cursor=cursor or None)
        moment = read_now(connection)
        items = [_shown(row, moment) for row in page.rows]
    return visit.page("operations.html", show=show, tabs=list(TABS), items=items, next_cursor=page.next_cursor)


@router.show("/operations/{operation_id}")
def operation_page(operation_id: str, visit: TheReader) -> Answer:
    return _page(visit, operation_id)


@router.act("/operations/{operation_id}/resolve")
def resolve(operation_id: str, form: OwnForm, visit: TheReader) -> Answer:
    """Keep a person's word. A refusal shows the page as it stands now and keeps what was typed."""
    verdict, reason = form.one("verdict"), form.one("reason")[:_LONGEST]
    if verdict not in ANSWERS:
        return _page(visit, operation_id, refused=refusal(visit.language, "answer_missing"), form=form, code=422)
    if not reason:
        return _page(visit, operation_id, refused=refusal(visit.language, "reason_missing"), form=form, code=422)
    happened = verdict == "happened"
    reference, typed = form.one("reference")[:1000] if happened else "", form.one("result") if happened else ""
    try:
        result = text.parse(typed.encode()) if typed else None
    except (text.NotJson, text.BadJson) as error:
        problem = visit.gettext(NOT_JSON).format(problem=str(error))
        return _page(visit, operation_id, refused=problem, form=form, code=422)
    answer = Verdict(verdict, reason=reason, reference=reference or None, result=result)
    try:
        with visit.board.db.write() as tx:
            visit.board.resolutions.resolve(tx, _number(operation_id), answer, visit.actor, CHANNEL)
    except (DecisionRefused, NotEligible) as error:
        code = 403 if isinstance(error, NotEligible) else 409
        return _page(visit, operation_id, refused=said(visit.language, error), form=form, code=code)
    return visit.go(f"/operations/{_number(operation_id)}", note="answered")


@router.act("/operations/{operation_id}/resend")
def send_again(operation_id: str, form: OwnForm, visit: TheReader) -> Answer:
    """Send a callback once more. What cannot be sent again says why, on the page as it stands now."""
    try:
        with visit.board.db.write() as tx:
            resend(tx, visit.actor, operation_id, CHANNEL, form.one("reason")[:_LONGEST] or None)
            visit.board.wake_outbox(tx)
    except NoSuchOperation as error:
        raise HTTPException(404) from error
    except NotResendable as error:
        return _page(visit, operation_id, refused=said(visit.language, error), form=form, code=409)
    return visit.go(f"/operations/{_number(operation_id)}", note="resent")


@router.show("/operations/{operation_id}/{step}")
def back(operation_id: str, step: str, visit: TheReader) -> Answer:
    """The address of a form, opened as a page."""
    return visit.go(f"/operations/{_number(operation_id)}")


def _page(
    visit: Visit, operation_id: str, *, refused: str = "", form: Form | None = None, code: int = 200
) -> HTMLResponse:
    with visit.board.db.read() as connection:
        row = operations.by_id(connection, _number(operation_id))
        if row is None:
            raise HTTPException(404)
        task = by_internal_id(connection, row["task"]) if row["task"] is not None else None
        review = open_review(connection, task["id"]) if task is not None else None
        waits = review is not None and review["operation"] == row["id"]
        values: dict[str, Any] = {
            "item": _shown(row, read_now(connection)),
            "review": review["id"] if review is not None and waits else None,
            "open": waits or answerable(row, task),
            "in_work": waits and row["phase"] == Phase.WORK,
            "may_resend": task is not None
            and may_resend(row)
            and visit.may(Act.OPERATE, own=task["requester"] == visit.actor.identity),
            "task_ended": task is None or Status(task["status"]) in (Status.DONE, Status.FAILED, Status.CANCELLED),
            "sent": _sent(row["body"]),
            "history": _history(
                [entry_document(it) for it in journal.entries(connection, row["id"])],
                [try_document(it) for it in listing.tries(connection, row["id"])],
                _attempts(connection, row),
            ),
        }
    draft = form.draft() if form else {}
    tried = form.one("verdict") if form else ""
    may = visit.may(Act.REVIEW)
    return visit.page("operation.html", code, refused=refused, draft=draft, tried=tried, may=may, **values)


def _shown(row: Any, moment: Any) -> dict[str, Any]:
    """An operation with what others have written cleared of hidden characters. linked: its task is still here."""
    found = hidden.Found()
    document = operation_document(row, moment)
    for name in ("target", "key", "execution_id", "external_reference", "last_error"):
        document[name] = hidden.strip(document[name], found) if document[name] else document[name]
    return document | {"linked": row["task"] is not None, "hidden": hidden.named(found)}


def _sent(body: str | None) -> Node | None:
    """What was sent, as far as it is kept."""
    if body is None:
        return None
    try:
        return tree(hidden.strip_all(json.loads(body), hidden.Found()))
    except ValueError:
        return tree(hidden.strip(body, hidden.Found()))


def _attempts(connection: Any, row: Any) -> list[dict[str, Any]]:
    """The attempts in which the board has made this call, or asked about it."""
    if row["owner"] is not None or row["task"] is None or row["give_up_at"] is not None:
        return []
    every = [attempt_document(it) for it in attempts_of(connection, row["task"]) if it["phase"] == row["phase"]]
    return [it | {"at": it["finished_at"]} for it in every if it["finished_at"] is not None]


def _history(
    entries: list[dict[str, Any]], tries: list[dict[str, Any]], attempts: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Everything that is known, the latest first; `of` says what it is."""
    every = [it | {"of": "entry"} for it in entries]
    every += [it | {"of": "try"} for it in tries]
    every += [it | {"of": "attempt"} for it in attempts]
    return sorted(every, key=lambda it: str(it["at"]), reverse=True)


def _number(operation_id: str) -> int:
    if not (operation_id.isascii() and operation_id.isdigit() and len(operation_id) < 19):
        raise HTTPException(404)
    return int(operation_id)
