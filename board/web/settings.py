"""Types and connections: to be read, and connections to be tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from board.access.rights import Act
from board.catalogue import store
from board.catalogue.connection_spec import CHATS
from board.catalogue.spec import TypeSpec
from board.catalogue.trial import NoSuchConnection
from board.db.clock import read_now
from board.effects import breaker
from board.effects.addresses import masked
from board.ports import Tried
from board.web.forms import OwnForm
from board.web.routing import PageRouter
from board.web.tree import tree
from board.web.visit import TheReader, Visit

router = PageRouter()


@router.show("/settings/types")
def types_page(visit: TheReader) -> HTMLResponse:
    with visit.board.db.read() as connection:
        rows = store.list_types(connection)
    types = [_type(row, visit.language.code) for row in rows]
    return visit.page("types.html", types=types)


@router.show("/settings/connections")
def connections_page(visit: TheReader) -> HTMLResponse:
    return _connections(visit, {})


@router.act("/settings/connections/{name}/test")
def try_connection(name: str, form: OwnForm, visit: TheReader) -> HTMLResponse:
    """Look whether a connection works, and show with it what was found."""
    visit.actor.require(Act.ADMIN)
    board = visit.board
    try:
        with board.db.read() as connection:
            view, users = board.trial.read(connection, name)
    except NoSuchConnection as error:
        raise HTTPException(404) from error
    return _connections(visit, {name: board.trial.look(view, users)})


def _connections(visit: Visit, found: Mapping[str, Sequence[Tried]]) -> HTMLResponse:
    """found: what a look at a connection has just shown, by its name."""
    with visit.board.db.read() as connection:
        rows = [store.shown_connection(row) for row in store.list_connections(connection)]
        failing = {row["connection"]: row for row in breaker.read(connection)}
        moment = read_now(connection)
    known = {"name", "kind", "url", "has_secrets", "version", "updated_at"}
    connections = [
        row
        | {
            "url": masked(row["url"]),
            "options": tree({k: v for k, v in row.items() if k not in known}),
            "is_chat": row["kind"] in CHATS,
            "can_be_tried": visit.board.trial.can(row["kind"]),
            "breaker": breaker.document(failing.get(row["name"]), moment),
            "found": found.get(row["name"], ()),
        }
        for row in rows
    ]
    return visit.page("connections.html", connections=connections)


def _type(row: Any, lang: str) -> dict[str, Any]:
    spec = TypeSpec.model_validate(row["spec"])
    return {
        "name": row["name"],
        "title": spec.shown_title(lang),
        "version": row["version"],
        "updated_at": row["created_at"],
        "updated_by": row["created_by"],
        "spec": spec,
        "tree": tree(row["spec"]),
    }
