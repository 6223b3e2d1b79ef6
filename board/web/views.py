"""Saved views of the inbox: kept, renamed, deleted. Each is an address under a name."""

from __future__ import annotations

from fastapi.responses import RedirectResponse

from board.access import views
from board.access.errors import AccessError
from board.web.forms import OwnForm
from board.web.narrowing import asked_of, state_of
from board.web.render import query
from board.web.routing import PageRouter
from board.web.visit import TheReader

router = PageRouter()


@router.act("/views")
def save(form: OwnForm, visit: TheReader) -> RedirectResponse:
    """What the address of the form narrows the inbox to, under a name."""
    state = state_of(asked_of(visit.request))
    if not state:
        return visit.go("/")
    try:
        with visit.board.db.write() as tx:
            views.save(tx, visit.actor.identity, views.REVIEWS, form.one("name"), state)
    except AccessError as error:
        return visit.go(query("/", state), note=error.code)
    return visit.go(query("/", state), note="view_saved")


@router.act("/views/{view_id}")
def change(view_id: int, form: OwnForm, visit: TheReader) -> RedirectResponse:
    back = query("/", state_of(asked_of(visit.request)))
    try:
        with visit.board.db.write() as tx:
            if form.one("do") == "delete":
                views.remove(tx, visit.actor.identity, view_id)
                return visit.go(back, note="view_deleted")
            views.rename(tx, visit.actor.identity, view_id, form.one("name"))
    except AccessError as error:
        return visit.go(back, note=error.code)
    return visit.go(back, note="view_renamed")
