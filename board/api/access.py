"""/me, /keys and /users."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict

from board.access import keys, links, users
from board.api.deps import TheActor, TheAdmin, TheBoard
from board.api.strict import StrictRoute, listing, ok
from board.tasks.view import time

router = APIRouter(tags=["access"], route_class=StrictRoute)


class KeyLimits(BaseModel):
    """rate: how many new tasks the key may put in, such as 600/min; null: as BOARD_INTAKE_RATE says. max_waiting: how
    many of its tasks may wait at the same time; null: any number."""

    model_config = ConfigDict(extra="forbid")

    rate: str | None = None
    max_waiting: int | None = None


class KeyIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    scopes: list[str]
    limits: KeyLimits = KeyLimits()


class KeyEdit(BaseModel):
    model_config = ConfigDict(extra="forbid")

    limits: KeyLimits


class UserIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    email: str
    role: str = "viewer"


@router.get("/me")
def me(actor: TheActor) -> JSONResponse:
    """Who this key is: a cheap test of a credential."""
    return ok({"name": actor.name, "kind": actor.kind, "identity": actor.identity, "scopes": list(actor.scopes)})


@router.get("/keys")
def list_keys(board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """Every API key, without its secret."""
    with board.db.read() as connection:
        rows = keys.list_keys(connection)
    return listing(
        [
            {
                "name": key.name,
                "hint": key.hint,
                "scopes": list(key.scopes),
                "limits": dict(key.limits or {}),
                "created_at": time(key.created_at),
                "revoked_at": time(key.revoked_at),
            }
            for key in rows
        ]
    )


@router.post("/keys", status_code=201)
def create_key(body: KeyIn, board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """A new API key; its secret is shown in this answer and never again."""
    with board.db.write() as tx:
        secret = keys.create(tx, body.name, body.scopes, body.limits.rate, body.limits.max_waiting)
    shown = {"name": body.name, "scopes": body.scopes, "limits": body.limits.model_dump(exclude_none=True)}
    return ok(shown | {"key": secret}, 201)


@router.patch("/keys/{name}")
def edit_key(name: str, body: KeyEdit, board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """Change the key's limits, from its next request on."""
    with board.db.write() as tx:
        keys.set_limits(tx, name, body.limits.rate, body.limits.max_waiting)
    return ok({"name": name, "limits": body.limits.model_dump(exclude_none=True)})


@router.delete("/keys/{name}")
def revoke_key(name: str, board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """The key stops working at once."""
    with board.db.write() as tx:
        keys.revoke(tx, name)
    return ok({"name": name, "revoked": True})


@router.get("/users")
def list_users(board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """Everybody with an account."""
    with board.db.read() as connection:
        people = users.list_users(connection)
    return listing([{"email": p.email, "role": p.role, "disabled": p.disabled} for p in people])


@router.post("/users", status_code=201)
def add_user(body: UserIn, board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """A new account, with a one-time link under which its owner sets the password."""
    with board.db.write() as tx:
        person = users.add(tx, body.email, body.role)
        token = links.user_link(tx, person.id)
    return ok(
        {"email": person.email, "role": person.role, "link": links.address(board.settings.public_url, token)}, 201
    )
