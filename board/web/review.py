"""One review: shown to whoever may read, decided by whoever may decide, undone while that is possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from board.review import read
from board.review.decide import DecisionRefused, Verdict
from board.web.forms import Form, OwnForm
from board.web.inbox import list_page
from board.web.narrowing import asked_of, state_of
from board.web.preferences import After, after_decision
from board.web.render import query
from board.web.routing import PageRouter
from board.web.visit import CHANNEL, TheReader, Visit
from board.web.wording import REASON_CLASS, refusal, said

router = PageRouter()
Answer = HTMLResponse | RedirectResponse

# What the form asks for beside the verdict; the rooms ask for the instruction by themselves.
NEEDED = {"reject": "reason_class", "happened": "reason", "not_happened": "reason", "drop": "reason"}
FIELD = "field:"  # before the names of a form's own fields
_LONGEST = 10_000  # characters of an instruction or a reason, as in the API


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a decision was not made; by, at and verdict of the decision that came before it, if one did."""

    code: str
    text: str
    by: str | None = None
    at: str | None = None
    verdict: str | None = None


@router.show("/reviews/{review_id}")
def review_page(review_id: str, visit: TheReader, done: str = "", raw: str = "") -> Answer:
    return _page(visit, row_of(visit, review_id), done=done, raw=raw == "1")


@router.act("/reviews/{review_id}/decision")
def decide(review_id: str, form: OwnForm, visit: TheReader) -> Answer:
    """Decide, then on to the next review. A refusal shows the review as it stands now and keeps what was typed."""
    row = row_of(visit, review_id)
    verdict = form.one("verdict")
    if not form.one(NEEDED.get(verdict, "verdict")):
        text = refusal(visit.language, "reason_missing")
        return _page(visit, row, code=422, refused=Refused("reason_missing", text), form=form)
    try:
        with visit.board.db.write() as tx:
            visit.board.decisions.decide(tx, row["id"], verdict_of(form, verdict), visit.actor, CHANNEL)
    except DecisionRefused as error:
        return refused_page(visit, review_id, error, form)
    return visit.go(next_page(visit, form, row["id"]))


@router.act("/reviews/{review_id}/undo")
def undo(review_id: str, form: OwnForm, visit: TheReader) -> Answer:
    row = row_of(visit, review_id)
    try:
        with visit.board.db.write() as tx:
            visit.board.decisions.undo(tx, row["id"], visit.actor, CHANNEL)
    except DecisionRefused as error:
        return refused_page(visit, review_id, error, form)
    return visit.go(f"/reviews/{row['id']}", note="undone")


@router.show("/reviews/{review_id}/{step}")
def back(review_id: str, step: str, visit: TheReader) -> Answer:
    """The address of a form, opened as a page: a reload after a refusal, or a language switch on it."""
    return visit.go(f"/reviews/{row_of(visit, review_id)['id']}")


def verdict_of(form: Form, verdict: str) -> Verdict:
    """Version and hash are always given here: a form without them is a decision about nothing that was shown."""
    reason_class: Any = form.one("reason_class")
    return Verdict(
        verdict,
        version=form.number("version") or 0,
        content_hash=form.one("content_hash"),
        instruction=form.one("instruction")[:_LONGEST] or None,
        reason=form.one("reason")[:_LONGEST] or None,
        reason_class=reason_class if reason_class in REASON_CLASS else None,
        reference=form.one("reference")[:1000] or None,
        action=form.one("action") or None,
        inputs={name.removeprefix(FIELD): value.strip() for name, value in form.fields if name.startswith(FIELD)},
    )


def refused_as(visit: Visit, error: DecisionRefused) -> tuple[Refused, int]:
    """A refusal in the reader's words, and its HTTP status."""
    details = error.details[0] if error.details else {}
    who = {name: details.get(name) for name in ("by", "at", "verdict")}
    code = 422 if error.code in ("instruction_missing", "verdict_not_offered", "answer_does_not_fit") else 409
    return Refused(error.code, said(visit.language, error), **who), code


def refused_page(visit: Visit, review_id: str, error: DecisionRefused, form: Form) -> Answer:
    refused, code = refused_as(visit, error)
    return _page(visit, row_of(visit, review_id), code=code, refused=refused, form=form)


def _page(
    visit: Visit,
    row: Any,
    *,
    code: int = 200,
    done: str = "",
    raw: bool = False,
    refused: Refused | None = None,
    form: Form | None = None,
) -> Answer:
    return list_page(
        visit,
        "decided" if row["status"] == "decided" and refused is None else "open",
        done=done,
        raw=raw,
        selected=row,
        code=code,
        refused=refused,
        draft=form.draft() if form else {},
        tried=form.one("verdict") if form else "",
    )


def next_page(visit: Visit, form: Form, decided: int) -> str:
    """The next review of the list if it still waits, else its first that does, else the empty list; with a way to undo.

    Whoever likes it otherwise stays, or goes back to the list.
    """
    asked = asked_of(visit.request)
    more = state_of(asked) | {"done": decided}
    wish = after_decision(visit)
    if wish is not After.NEXT:
        return query(f"/reviews/{decided}", state_of(asked)) if wish is After.STAY else query("/", more)
    wanted = form.number("next")
    with visit.board.db.read() as connection:
        row = read.by_id(connection, wanted) if wanted is not None else None
        if row is not None and row["status"] == "open":
            return query(f"/reviews/{row['id']}", more)
        narrowed = asked.wanted(connection, visit.actor, visit.board.settings.timezone)
        first = read.inbox(connection, wanted=narrowed, limit=1).rows
    return query(f"/reviews/{first[0]['id']}" if first else "/", more)


def row_of(visit: Visit, review_id: str) -> Any:
    if review_id.isascii() and review_id.isdigit() and len(review_id) < 19:
        with visit.board.db.read() as connection:
            row = read.by_id(connection, int(review_id))
        if row is not None:
            return row
    raise HTTPException(404)
