"""A review opened from a link in a mail or a chat: shown to whoever holds the link, and low risks decided by it.

Showing changes nothing, however often and by whom. Deciding is a form with the seal of the page that was shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from board.access.sessions import Session
from board.access.throttle import TooManyTries
from board.api.file_answer import file_answer
from board.db.clock import read_now
from board.files import ledger
from board.locale import LANGUAGES
from board.review.by_link import BadSeal, LinkVoid, Opened, PageUsed
from board.review.decide import DecisionRefused
from board.review.policy import NotEligible
from board.review.read import decision
from board.tasks.view import data_of
from board.web.attachments import named
from board.web.forms import Form, SealedForm
from board.web.language import choose, language
from board.web.review import NEEDED, Refused, refused_as, verdict_of
from board.web.review_view import detail, undo_seconds
from board.web.routing import PageRouter
from board.web.visit import LANGUAGE_COOKIE, TheVisit, Visit
from board.web.wording import refusal, said

router = PageRouter()
Answer = HTMLResponse | RedirectResponse
# Void links that one address may open in 15 minutes: more than a mail full of old ones. A good link opens all the same.
MOST_VOID = 60


@dataclass(frozen=True, slots=True)
class LinkVisit:
    """A request by a good link. visit: who asks, in the language that fits. person: the same with the link's person."""

    visit: Visit
    person: Visit
    opened: Opened
    address: str
    query: str

    @property
    def other(self) -> str | None:
        """Who is signed in here, where that is not the link's person."""
        session = self.visit.session
        return session.actor.name if session is not None and session.user_id != self.opened.user_id else None


@router.show("/r/{token}")
def show(token: str, visit: TheVisit) -> Answer:
    """The review, or what has become of it."""
    try:
        link = _open(visit, token)
    except LinkVoid:
        return _void(visit)
    visit.board.by_link.note(visit.board.db, link.opened)
    return _page(link)


@router.act("/r/{token}/decision")
def decide(token: str, form: SealedForm, visit: TheVisit) -> Answer:
    """Decide about what the page showed; a refusal shows how it stands now and keeps what was typed."""
    verdict = form.one("verdict")
    try:
        link = _open(visit, token)
        if not form.one(NEEDED.get(verdict, "verdict")):
            return _refused(link, "reason_missing", 422, form)
        if link.other:
            return _refused(link, "not_you", 403, form)
        with visit.board.db.write() as tx:
            visit.board.by_link.decide(tx, token, form.raw("seal"), verdict_of(form, verdict))
    except (LinkVoid, NotEligible) as error:
        return _ended(visit, token, error, form)
    except BadSeal:
        return _refused(link, "bad_seal", 403, form)
    except PageUsed:
        return _refused(_open(visit, token), "page_used", 409, form)
    except DecisionRefused as error:
        refused, code = refused_as(link.visit, error)
        return _page(_open(visit, token), code, refused, form)
    return visit.go(link.address + link.query)


@router.act("/r/{token}/undo")
def undo(token: str, form: SealedForm, visit: TheVisit) -> Answer:
    """Take the own decision back; pressed twice, the second leads to the same page."""
    try:
        link = _open(visit, token)
        if link.other:
            return _refused(link, "not_you", 403, form)
        with visit.board.db.write() as tx:
            visit.board.by_link.undo(tx, token, form.raw("seal"))
    except (LinkVoid, NotEligible) as error:
        return _ended(visit, token, error, form)
    except BadSeal:
        return _refused(link, "bad_seal", 403, form)
    except PageUsed:
        pass
    except DecisionRefused as error:
        refused, code = refused_as(link.visit, error)
        return _page(_open(visit, token), code, refused, form)
    return visit.go(link.address + link.query)


@router.show("/r/{token}/files/{file_id}")
def file(token: str, file_id: str, visit: TheVisit) -> Response:
    """A file that the shown review names, as on the review's own page."""
    try:
        link = _open(visit, token)
    except LinkVoid:
        return _void(visit)
    board, task = visit.board, link.opened.task["id"]
    try:
        with board.db.read() as connection:
            data = data_of(connection, task)
            if link.opened.why == "closed" or file_id not in {*named(data["result"]), *named(data["payload"])}:
                raise HTTPException(404)
            row = ledger.visible(connection, link.opened.actor, file_id)
    except ledger.NoSuchFile as error:
        raise HTTPException(404) from error
    board.files.identity.check()
    return file_answer(visit.request, board.files.storage, row, inline=True)


@router.show("/r/{token}/{step}")
def back(token: str, step: str, visit: TheVisit) -> Answer:
    """The address of a form, opened as a page: a reload after a refusal."""
    return visit.go(f"/r/{token}")


def _open(visit: Visit, token: str) -> LinkVisit:
    """Raises LinkVoid."""
    with visit.board.db.read() as connection:
        opened = visit.board.by_link.open(connection, token)
    spoken, query = _speaking(visit, opened.actor.lang)
    session = Session(opened.actor, opened.user_id, opened.actor.lang, renewal_due=False, csrf="")
    return LinkVisit(spoken, replace(spoken, session=session), opened, f"/r/{token}", query)


def _speaking(visit: Visit, persons: str | None) -> tuple[Visit, str]:
    """The visit in the language that the address asks for, else that of the browser's cookie, of the link's person, or
    what the browser accepts; and the query that keeps it. No form and no cookie is needed to change it."""
    request, wish = visit.request, visit.request.query_params.get("lang", "")
    cookie = request.cookies.get(LANGUAGE_COOKIE)
    known = cookie if cookie in LANGUAGES else persons
    asked = wish if wish in LANGUAGES else None
    code = choose(asked, known, request.headers.get("accept-language"), visit.board.settings.lang)
    spoken = replace(visit, language=language(code, visit.board.settings.timezone))
    return spoken, f"?lang={wish}" if asked else ""


def _page(link: LinkVisit, code: int = 200, refused: Refused | None = None, form: Form | None = None) -> Answer:
    board, opened = link.visit.board, link.opened
    shared: dict[str, Any] = {
        "address": link.address,
        "lang": link.query,
        "email": opened.actor.name,
        "other": link.other,
        "refused": refused,
        "draft": form.draft() if form else {},
        "tried": form.one("verdict") if form else "",
    }
    with board.db.read() as connection:
        shared["seal"] = board.by_link.seal(connection, opened)
        if opened.why == "closed":
            row = opened.review
            decided = decision(row) if row["status"] == "decided" else None
            seconds = undo_seconds(link.person, row, read_now(connection)) if opened.may_undo else 0
            shared |= {"decided": decided, "review_id": row["id"], "undo_seconds": seconds}
        else:
            shared["review"] = detail(link.person, connection, opened.review)
    shared |= {"offered": opened.offered, "why": opened.why}
    return link.visit.page("link_record.html" if opened.why == "closed" else "link.html", code, **shared)


def _refused(link: LinkVisit, code: str, status: int, form: Form) -> Answer:
    return _page(link, status, Refused(code, refusal(link.visit.language, code)), form)


def _ended(visit: Visit, token: str, error: Exception, form: Form) -> Answer:
    """Nothing can be done by the link any more; where it still shows something, it says why."""
    try:
        link = _open(visit, token)
    except LinkVoid:
        return _void(visit, form)
    return _page(link, 403, Refused("not_eligible", said(link.visit.language, error)), form)


def _void(visit: Visit, form: Form | None = None) -> Answer:
    """The same for every link that is not good, whatever the reason."""
    request = visit.request
    spoken, _ = _speaking(visit, None)
    shown = {"draft": form.draft() if form else {}, "address": ""}
    try:
        request.app.state.void_links.begin(request.client.host if request.client else "")
    except TooManyTries as error:
        answer = spoken.page("link_void.html", 429, wait=True, **shown)
        answer.headers["Retry-After"] = str(int(error.retry_after) + 1)
        return answer
    return spoken.page("link_void.html", 410, wait=False, **shown)
