"""Setting a password from a one-time link, signing in and out, and the language switch."""

from __future__ import annotations

from typing import Any

from fastapi.responses import HTMLResponse, RedirectResponse

from board.access import links, sessions, users
from board.access.errors import AccessError
from board.access.passwords import MIN_LENGTH
from board.access.sign_in import sign_in
from board.access.throttle import TooManyTries
from board.locale import LANGUAGES
from board.web.forms import AnyForm
from board.web.routing import PageRouter
from board.web.visit import LANGUAGE_COOKIE, SESSION_COOKIE, YEAR, TheVisit, Visit, own_path
from board.web.wording import said

router = PageRouter()
Answer = HTMLResponse | RedirectResponse


@router.show("/setup/{token}")
def setup_page(token: str, visit: TheVisit) -> Answer:
    """Shows the form; only the POST uses the link up, so that a mail scanner cannot."""
    with visit.board.db.read() as connection:
        link = links.look(connection, token)
    if link is None:
        return visit.page("setup_void.html", 410)
    return _setup(visit, link)


@router.act("/setup/{token}")
def set_up(token: str, visit: TheVisit, form: AnyForm) -> Answer:
    with visit.board.db.read() as connection:
        link = links.look(connection, token)
    if link is None:
        return visit.page("setup_void.html", 410)
    try:
        with visit.board.db.write() as tx:
            person = links.use(tx, token, email=form.one("email"), password=form.raw("password"))
            session, _ = sessions.start(tx, person.id)
    except AccessError as error:
        return _setup(visit, link, error=said(visit.language, error), email=form.one("email"), status=422)
    return _signed_in(visit, session, "/", note="welcome")


@router.show("/login")
def login_page(visit: TheVisit, next: str = "/") -> Answer:
    if visit.session is not None:
        return visit.go(own_path(next))
    return _login(visit, next)


@router.act("/login")
def login(visit: TheVisit, form: AnyForm) -> Answer:
    throttle = visit.request.app.state.throttle
    try:
        session, _ = sign_in(visit.board.db, throttle, form.one("email"), form.raw("password"))
    except AccessError as error:
        status = 429 if isinstance(error, TooManyTries) else 401
        answer = _login(visit, form.one("next"), said(visit.language, error), form.one("email"), status)
        if isinstance(error, TooManyTries):
            answer.headers["Retry-After"] = str(int(error.retry_after) + 1)
        return answer
    return _signed_in(visit, session, own_path(form.one("next")))


@router.act("/logout")
def logout(visit: TheVisit, form: AnyForm) -> Answer:
    token = visit.request.cookies.get(SESSION_COOKIE)
    if token:
        with visit.board.db.write() as tx:
            sessions.end(tx, token)
    answer = visit.go("/login", note="signed_out")
    answer.delete_cookie(SESSION_COOKIE, path="/")
    return answer


@router.act("/language")
def set_language(visit: TheVisit, form: AnyForm) -> Answer:
    code = form.one("lang")
    answer = visit.go(own_path(form.one("next")))
    if code in LANGUAGES:
        if visit.session is not None:
            with visit.board.db.write() as tx:
                users.set_lang(tx, visit.session.user_id, code)
        visit.set_cookie(answer, LANGUAGE_COOKIE, code, YEAR)
    return answer


def _setup(visit: Visit, link: links.SetupLink, *, error: str = "", email: str = "", status: int = 200) -> HTMLResponse:
    return visit.page("setup.html", status, link=link, error=error, email=email, least=MIN_LENGTH)


def _login(visit: Visit, next: str, error: str = "", email: str = "", status: int = 200) -> HTMLResponse:
    with visit.board.db.read() as connection:
        has_owner = users.has_owner(connection)
    values: dict[str, Any] = {"next": own_path(next), "error": error, "email": email, "has_owner": has_owner}
    return visit.page("login.html", status, **values)


def _signed_in(visit: Visit, token: str, path: str, note: str | None = None) -> RedirectResponse:
    answer = visit.go(path, note)
    visit.set_cookie(answer, SESSION_COOKIE, token, int(sessions.LIFETIME))
    return answer
