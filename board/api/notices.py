"""/notices: who is told of what by which channel, and what was told. /alerts: what rings, and what rang."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from board.access.rights import Act
from board.api.deps import TheActor, TheAdmin, TheBoard
from board.api.strict import StrictRoute, listing, ok
from board.notices import alerts, routing, rules, shown
from board.notices.routing import RouteIn
from board.notices.rules import RuleEdit

router = APIRouter(tags=["notices"], route_class=StrictRoute)


@router.get("/notices")
def list_notices(board: TheBoard, actor: TheActor) -> JSONResponse:
    """The last 200 notices of the routes that you may see, the newest first."""
    with board.db.read() as connection:
        return listing(shown.last(connection, actor))


@router.get("/notices/routes")
def list_routes(board: TheBoard, actor: TheActor) -> JSONResponse:
    """The routes that you have made or that tell you; all of them for an administrator."""
    with board.db.read() as connection:
        return listing([routing.document(row) for row in routing.visible(connection, actor)])


@router.post("/notices/routes", status_code=201)
def make_route(body: RouteIn, board: TheBoard, actor: TheActor) -> JSONResponse:
    """Tell somebody of something from now on. Works everywhere within a second."""
    settings = board.settings
    with board.db.write() as tx:
        row = routing.make(tx, body, actor, board.notifiers, zone=settings.timezone, lang=settings.lang)
    return ok(routing.document(row), 201)


@router.delete("/notices/routes/{route_id}")
def remove_route(route_id: int, board: TheBoard, actor: TheActor) -> JSONResponse:
    """Tell no more by it; what it was still to tell goes with it."""
    with board.db.write() as tx:
        routing.remove(tx, route_id, actor)
    return ok({"id": route_id, "deleted": True})


@router.get("/alerts")
def list_alerts(
    board: TheBoard, actor: TheActor, status: Annotated[Literal["open", "all"], Query()] = "all"
) -> JSONResponse:
    """The last 200 times that a rule rang, the newest first."""
    actor.require(Act.READ)
    with board.db.read() as connection:
        return listing(alerts.history(connection, only_open=status == "open"))


@router.get("/alerts/rules")
def list_rules(board: TheBoard, actor: TheActor) -> JSONResponse:
    """When something rings."""
    actor.require(Act.READ)
    with board.db.read() as connection:
        return listing([rules.document(rule) for rule in rules.read(connection)])


@router.patch("/alerts/rules/{rule}")
def edit_rule(rule: str, body: RuleEdit, board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """Change a rule, or switch it off. Holds from the next minute on."""
    with board.db.write() as tx:
        return ok(rules.document(rules.edit(tx, rule, body, actor)))
