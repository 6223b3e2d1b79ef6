"""What went wrong, as a page, wherever a person and no program asked."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.responses import Response

from board.api.errors import EXPECTED, translate
from board.web.forms import BadForm
from board.web.security import headers_of
from board.web.visit import SignInNeeded, Visit, own_path, speaking, the_visit
from board.web.wording import N_, SPOKEN, said

log = logging.getLogger(__name__)

# Addresses that programs ask; they get errors as the API's contract says.
_PROGRAMS = (
    "/api",
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/integrations",
    "/mcp",
    "/callbacks",
    "/files",
)

_TITLES: Mapping[int, tuple[str, str]] = {
    400: (N_("This request cannot be read"), N_("Go back and try again.")),
    403: (N_("Not allowed"), N_("Your role does not allow this. Ask an owner, or sign in with another account.")),
    404: (N_("Nothing here"), N_("There is nothing at this address. It may have been removed, or the link is wrong.")),
    405: (N_("Not possible this way"), N_("Open this page from the board itself.")),
    409: (N_("It has changed meanwhile"), N_("Look at it again, then repeat what you wanted.")),
    410: (N_("No longer on the board"), N_("It was archived.")),
    413: (N_("Too much text"), N_("The form holds more than the board takes. Shorten it and send it again.")),
    503: (N_("Not available just now"), N_("The board's database does not answer. Try again in a moment.")),
    500: (N_("Something went wrong here"), N_("The board's log has the details under the reference below.")),
}
_FORMS = {
    "other_site": N_(
        "This form was sent from another address than the board's own, so nothing was done. If you reached the board "
        "under this very address, set BOARD_PUBLIC_URL to it."
    ),
    "stale_form": N_("This form is out of date, so nothing was done. Open the page again and repeat it."),
}


def is_page(path: str) -> bool:
    return not any(path == prefix or path.startswith(prefix + "/") for prefix in _PROGRAMS)


def install(app: FastAPI) -> None:
    """Errors of pages become pages; everything else is answered as before."""
    for kind in (*EXPECTED, Exception):
        app.add_exception_handler(kind, _handler(app.exception_handlers[kind]))
    app.add_exception_handler(SignInNeeded, _sign_in_needed)
    app.add_exception_handler(BadForm, _bad_form)


def _handler(for_programs: Any) -> Any:
    async def answer(request: Request, error: Exception) -> Response:
        if not is_page(request.url.path):
            response: Response = await for_programs(request, error)
            return response
        if not isinstance(error, EXPECTED):
            log.error("page %s failed", getattr(request.state, "request_id", "?"), exc_info=error)
        return await run_in_threadpool(_error_page, request, error)

    return answer


def _error_page(request: Request, error: Exception) -> HTMLResponse:
    known = translate(error)
    visit = _visit(request, ask=known.status_code != 503)  # who asks cannot be looked up while the database is away
    title, advice = _TITLES.get(known.status_code, _TITLES[400] if known.status_code < 500 else _TITLES[500])
    text = visit.gettext(advice)
    if isinstance(error, SPOKEN):  # a refusal of a room says more
        text = said(visit.language, error)
    again = None
    if known.status_code >= 500:  # it may be over in a moment
        again = visit.here if request.method in ("GET", "HEAD") else _came_from(request)
    return _shown(visit, known.status_code, title=visit.gettext(title), advice=text, again=again)


def _sign_in_needed(request: Request, error: Exception) -> Response:
    assert isinstance(error, SignInNeeded)
    visit = _visit(request, ask=False)
    login = f"/login?next={quote(visit.here, safe='')}"
    if request.method in ("GET", "HEAD"):
        return RedirectResponse(login if visit.here != "/" else "/login", 303)
    return _shown(
        visit,
        401,
        title=visit.gettext(N_("Your session has ended")),
        advice=visit.gettext(N_("Nothing was done. Sign in here and repeat it; what you typed is kept.")),
        draft=error.draft,
        sign_in=_came_from(request),
    )


def _bad_form(request: Request, error: Exception) -> Response:
    assert isinstance(error, BadForm)
    visit = _visit(request, ask=False)
    title = visit.gettext(N_("Nothing was done"))
    return _shown(visit, 403, title=title, advice=visit.gettext(_FORMS[error.code]), draft=error.draft)


def _came_from(request: Request) -> str:
    """The page of ours with the form that was sent."""
    return own_path(request.headers.get("referer", "").partition(request.headers.get("host", " "))[2])


def _shown(visit: Visit, status: int, **values: Any) -> HTMLResponse:
    request_id = getattr(visit.request.state, "request_id", "")
    blank: dict[str, Any] = {"draft": {}, "sign_in": None, "again": None, "request_id": request_id, "status": status}
    answer = visit.page("error.html", status, **(blank | values))
    for name, value in headers_of(visit.request.url.path).items():  # an unforeseen error passes none of the middleware
        answer.headers.setdefault(name, value)
    return answer


def _visit(request: Request, *, ask: bool = True) -> Visit:
    """The visit; without the session where it does not matter or the database does not answer."""
    if ask:
        try:
            return the_visit(request)
        except Exception:
            log.warning("an error page without its session", exc_info=True)
    return speaking(request, request.app.state.board, None)
