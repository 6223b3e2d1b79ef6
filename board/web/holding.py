"""What a reader does with a review before deciding: take it, give it back, put it aside, assign it, comment on it."""

from __future__ import annotations

from datetime import timedelta

from fastapi.responses import HTMLResponse, RedirectResponse

from board.db.clock import read_now
from board.review.decide import DecisionRefused
from board.web.forms import Form, OwnForm
from board.web.narrowing import asked_of, state_of
from board.web.render import query
from board.web.review import refused_page, row_of
from board.web.review_view import HOURS
from board.web.routing import PageRouter
from board.web.visit import CHANNEL, TheReader, Visit

router = PageRouter()
_LONGEST = 10_000  # characters of a comment, as in the API


@router.act("/reviews/{review_id}/hold")
def hold(review_id: str, form: OwnForm, visit: TheReader) -> HTMLResponse | RedirectResponse:
    """One of claim, take_over, release, snooze, wake, assign and comment; then the review again, or the inbox."""
    row = row_of(visit, review_id)
    what, narrow = form.one("do"), state_of(asked_of(visit.request))
    try:
        _do(visit, row["id"], what, form)
    except DecisionRefused as error:
        return refused_page(visit, review_id, error, form)
    if what == "snooze":
        return visit.go(query("/", narrow), note="snoozed")
    return visit.go(query(f"/reviews/{row['id']}", narrow))


def _do(visit: Visit, review: int, what: str, form: Form) -> None:
    holding, actor = visit.board.holding, visit.actor
    with visit.board.db.write() as tx:
        match what:
            case "claim" | "take_over":
                note = form.one("note")[:2000] or None
                holding.claim(tx, review, actor, CHANNEL, take_over=what == "take_over", note=note)
            case "release":
                holding.release(tx, review, actor, CHANNEL)
            case "snooze":
                hours = form.number("hours")
                if hours in HOURS:
                    holding.snooze(tx, review, read_now(tx) + timedelta(hours=hours), actor, CHANNEL)
            case "wake":
                holding.snooze(tx, review, None, actor, CHANNEL)
            case "assign":
                holding.assign(tx, review, form.one("assignee").strip()[:200] or None, actor, CHANNEL)
            case "comment":
                if text := form.one("text").strip()[:_LONGEST]:
                    holding.comment(tx, review, text, actor, CHANNEL)
