"""What one person likes to have otherwise, kept in the browser: which page follows a decision."""

from __future__ import annotations

from enum import StrEnum

from fastapi.responses import HTMLResponse, RedirectResponse

from board.web.forms import OwnForm
from board.web.routing import PageRouter
from board.web.visit import YEAR, TheReader, Visit

router = PageRouter()
AFTER_COOKIE = "board_after"


class After(StrEnum):
    """What opens after a decision."""

    NEXT = "next"
    STAY = "stay"
    LIST = "list"


def after_decision(visit: Visit) -> After:
    wish = visit.request.cookies.get(AFTER_COOKIE)
    return After(wish) if wish in set(After) else After.NEXT


@router.show("/settings/me")
def preferences_page(visit: TheReader) -> HTMLResponse:
    return visit.page("preferences.html", after=after_decision(visit))


@router.act("/settings/me")
def save(form: OwnForm, visit: TheReader) -> RedirectResponse:
    answer = visit.go("/settings/me", note="settings_saved")
    wish = form.one("after")
    if wish in set(After):
        visit.set_cookie(answer, AFTER_COOKIE, wish, YEAR)
    return answer
