"""Who is told of what: your own routes, for an administrator all of them, and the last notices. What rang, and why."""

from __future__ import annotations

from typing import Any

from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from board.access import groups
from board.access.rights import Act
from board.catalogue.store import connection_kinds
from board.notices import alerts, routing, rules, shown
from board.notices.kinds import EVERYBODY, Kind
from board.notices.routing import NoSuchRoute, RouteIn
from board.notices.wording import KINDS, TITLES
from board.tasks.intake import Problem
from board.web.forms import Form, OwnForm
from board.web.routing import PageRouter
from board.web.visit import TheReader, Visit

router = PageRouter()
PAGE = "/settings/notices"
SHOWN = 30  # of the last notices


@router.show(PAGE)
def notices_page(visit: TheReader) -> HTMLResponse:
    return _page(visit)


@router.act(PAGE)
def make(form: OwnForm, visit: TheReader) -> HTMLResponse | RedirectResponse:
    board = visit.board
    try:
        wish = RouteIn.model_validate(_wish(form))
        with board.db.write() as tx:
            settings = board.settings
            routing.make(tx, wish, visit.actor, board.notifiers, zone=settings.timezone, lang=visit.language.code)
    except ValidationError as error:
        return _page(visit, str(error.errors()[0]["loc"][0]), form)
    except Problem as error:
        return _page(visit, error.field, form)
    return visit.go(PAGE, note="settings_saved")


@router.act(PAGE + "/{route}/remove")
def remove(route: int, form: OwnForm, visit: TheReader) -> RedirectResponse:
    try:
        with visit.board.db.write() as tx:
            routing.remove(tx, route, visit.actor)
    except NoSuchRoute as error:
        raise HTTPException(404) from error
    return visit.go(PAGE, note="route_removed")


@router.show("/ops/alerts")
def alerts_page(visit: TheReader) -> HTMLResponse:
    with visit.board.db.read() as connection:
        rang = alerts.history(connection)
        standing = [rules.document(rule) for rule in rules.read(connection)]
    return visit.page("alerts.html", rang=rang, rules=standing, titles=TITLES)


def _wish(form: Form) -> dict[str, Any]:
    """What the form says, as the API would have it. Fields that are left empty are left out."""
    wish: dict[str, Any] = {"about": form.many("about"), "connection": form.one("connection")}
    wish |= {name: form.one(name) for name in ("audience", "address", "zone") if form.one(name)}
    if form.one("quiet_from") and form.one("quiet_to"):
        wish["quiet"] = {"from": form.one("quiet_from"), "to": form.one("quiet_to")}
    return wish


def _page(visit: Visit, problem: str = "", form: Form | None = None) -> HTMLResponse:
    """problem: the field that was refused."""
    board, actor = visit.board, visit.actor
    admin = visit.may(Act.ADMIN)
    with board.db.read() as connection:
        mine = [routing.document(row) for row in routing.visible(connection, actor)]
        last = shown.last(connection, actor)[:SHOWN]
        kinds = connection_kinds(connection)
        names = sorted(groups.list_groups(connection)) if admin else []
    usable = [
        (name, kind) for name, kind in sorted(kinds.items()) if kind == "mail" or (admin and kind in board.notifiers)
    ]
    audiences = [actor.name, EVERYBODY, *names] if admin and actor.kind == "person" else [actor.name]
    return visit.page(
        "notices.html",
        422 if problem else 200,
        routes=mine,
        last=last,
        usable=usable,
        audiences=audiences,
        about=[(kind, KINDS[kind]) for kind in Kind],
        words=KINDS,
        zone=board.settings.timezone,
        problem=problem,
        form=form or Form(),
    )
