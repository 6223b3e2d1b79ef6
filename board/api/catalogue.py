"""/types and /connections: what kinds of work there are, and where they call."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict

from board.access.rights import Act
from board.api.deps import TheActor, TheAdmin, TheBoard
from board.api.errors import ApiError
from board.api.strict import StrictRoute, listing, ok
from board.catalogue import store
from board.catalogue.apply import apply
from board.catalogue.trial import NoSuchConnection
from board.db.clock import read_now
from board.effects import breaker
from board.tasks.view import time

router = APIRouter(tags=["types"], route_class=StrictRoute)


class CatalogueIn(BaseModel):
    """The same as a YAML file for `board types apply`."""

    model_config = ConfigDict(extra="forbid")

    types: list[dict[str, Any]] = []
    connections: list[dict[str, Any]] = []


@router.get("/types")
def list_types(board: TheBoard, actor: TheActor) -> JSONResponse:
    """The current version of every type."""
    actor.require(Act.READ_OWN)
    with board.db.read() as connection:
        return listing([_type(row) for row in store.list_types(connection)])


@router.get("/types/{name}")
def get_type(name: str, board: TheBoard, actor: TheActor) -> JSONResponse:
    """One type."""
    actor.require(Act.READ_OWN)
    with board.db.read() as connection:
        row = next((row for row in store.list_types(connection) if row["name"] == name), None)
    if row is None:
        raise ApiError(404, "type_not_found", f"There is no task type “{name[:120]}”.")
    return ok(_type(row))


@router.post("/types")
def apply_types(body: CatalogueIn, board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """Apply types and connections: all of them, or nothing where any part is wrong."""
    return _apply(board, actor, body)


@router.get("/connections", tags=["connections"])
def list_connections(board: TheBoard, actor: TheActor) -> JSONResponse:
    """Every connection, without its secrets."""
    actor.require(Act.READ)
    with board.db.read() as connection:
        rows = store.list_connections(connection)
        failing = {row["connection"]: row for row in breaker.read(connection)}
        moment = read_now(connection)
    shown = [
        row | {"updated_at": time(row["updated_at"]), "breaker": breaker.document(failing.get(row["name"]), moment)}
        for row in map(store.shown_connection, rows)
    ]
    return listing(shown)


@router.post("/connections", tags=["connections"])
def apply_connections(body: CatalogueIn, board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """The same as POST /types: one body may hold both."""
    return _apply(board, actor, body)


@router.post("/connections/{name}/test", tags=["connections"])
def try_connection(name: str, board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """Look whether a connection works, and whether the types that use it fit. Nothing is started by it."""
    try:
        with board.db.read() as connection:
            view, users = board.trial.read(connection, name)
    except NoSuchConnection as error:
        raise ApiError(404, "connection_not_found", str(error)) from error
    found = board.trial.look(view, users)
    works = all(it.status != "wrong" for it in found)
    return ok({"name": name, "works": works, "findings": [asdict(it) for it in found]})


def _apply(board: TheBoard, actor: TheAdmin, body: CatalogueIn) -> JSONResponse:
    with board.db.write() as tx:
        applied = apply(tx, body.model_dump(), handlers=board.handlers, vault=board.vault, author=actor.identity)
    return ok(asdict(applied))


def _type(row: Any) -> dict[str, Any]:
    return {
        **row["spec"],
        "name": row["name"],
        "version": row["version"],
        "updated_at": time(row["created_at"]),
        "updated_by": row["created_by"],
    }
