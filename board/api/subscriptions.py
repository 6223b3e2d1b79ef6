"""/subscriptions: addresses that hear of events of all tasks, or of those of some types."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from board.access.rights import Act
from board.api.deps import TheActor, TheBoard
from board.api.strict import StrictRoute, listing, ok
from board.effects import subscriptions
from board.effects.signing import problem_of
from board.effects.subscribed import document
from board.effects.subscriptions import Event, Wish

router = APIRouter(prefix="/subscriptions", tags=["subscriptions"], route_class=StrictRoute)


def _signs(secret: str) -> str:
    if (problem := problem_of(secret)) is not None:
        raise ValueError(problem)
    return secret


class SubscriptionIn(BaseModel):
    """events: of which it hears. types: only of tasks of these types; left out or empty: of all. secret: signs the
    calls, `whsec_` + base64 or other text; left out: the board's own signs."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, Field(min_length=1, max_length=2000)]
    events: Annotated[list[Event], Field(min_length=1, max_length=20)]
    types: Annotated[list[Annotated[str, Field(min_length=1, max_length=120)]] | None, Field(max_length=200)] = None
    secret: Annotated[
        str | None,
        BeforeValidator(lambda text: text or None),
        AfterValidator(lambda text: None if text is None else _signs(text)),
        Field(max_length=500),
    ] = None


@router.get("")
def list_subscriptions(board: TheBoard, actor: TheActor) -> JSONResponse:
    """Your own subscriptions, those of everybody for an administrator, each with its last result."""
    actor.require(Act.READ)
    with board.db.read() as connection:
        found = [document(connection, row) for row in subscriptions.visible(connection, actor)]
    return listing(found)


@router.post("", status_code=201)
def subscribe(body: SubscriptionIn, board: TheBoard, actor: TheActor) -> JSONResponse:
    """Hear of events from now on. 201: new. 200: this address hears of these events already; types and secret are those
    of this call from now on."""
    wish = Wish(body.url, tuple(body.events), tuple(body.types) if body.types else None, body.secret)
    with board.db.write() as tx:
        row, made = subscriptions.subscribe(tx, wish, actor, board.vault, board.check_url)
    time.sleep(subscriptions.KNOWN_SECONDS)  # until every process knows of it
    with board.db.read() as connection:
        return ok(document(connection, row), 201 if made else 200)


@router.get("/{subscription_id}")
def get_subscription(subscription_id: str, board: TheBoard, actor: TheActor) -> JSONResponse:
    """One subscription with its last result."""
    with board.db.read() as connection:
        return ok(document(connection, subscriptions.one(connection, subscription_id, actor)))


@router.delete("/{subscription_id}")
def unsubscribe(subscription_id: str, board: TheBoard, actor: TheActor) -> JSONResponse:
    """It hears of nothing any more, at once; what waits for it is dropped."""
    with board.db.write() as tx:
        subscriptions.remove(tx, subscription_id, actor)
    return ok({"id": subscription_id, "deleted": True})


@router.post("/{subscription_id}/resend")
def send_again(subscription_id: str, board: TheBoard, actor: TheActor) -> JSONResponse:
    """Switch it on, and send again what was given up in the last three days, under the same ids."""
    with board.db.write() as tx:
        count = subscriptions.send_again(tx, subscription_id, actor)
        board.wake_outbox(tx)
    with board.db.read() as connection:
        return ok(document(connection, subscriptions.one(connection, subscription_id, actor)) | {"resent": count})
