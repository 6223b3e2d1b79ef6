"""Links by which one person opens one review: made, listed, withdrawn."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from board.access import users
from board.api.deps import CHANNEL, TheAdmin, TheBoard, TheReviewer
from board.api.errors import ApiError, field_error
from board.api.reviews import number_of
from board.api.strict import StrictRoute, listing, ok
from board.review import read
from board.tasks.view import time

router = APIRouter(tags=["reviews"], route_class=StrictRoute)


class LinkIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    user: Annotated[str, Field(max_length=200, description="whom it is for: a mail address")]


@router.post("/reviews/{review_id}/links", status_code=201)
def make_link(review_id: str, body: LinkIn, board: TheBoard, actor: TheAdmin) -> JSONResponse:
    """A link to an open review for one person who may decide it; its address is in this answer and never again.

    It takes the scope admin: whoever holds the link decides low risks in that person's name.
    """
    number = number_of(review_id)
    with board.db.write() as tx:
        if read.by_id(tx, number) is None:
            raise ApiError(404, "not_found", "There is no such review.")
        person = users.find_by_email(tx, body.user.removeprefix("user:"))
        if person is None:
            raise field_error("user", f"There is no user with the address {body.user}.", "unknown_user")
        made = board.review_links.issue(tx, number, person.id, purpose=CHANNEL, by=actor.by(CHANNEL))
    values = {"id": str(made.id), "review_id": str(number), "user": made.email, "url": made.url}
    return ok(values | {"expires_at": time(made.expires_at)}, 201)


@router.get("/reviews/{review_id}/links")
def list_links(review_id: str, board: TheBoard, actor: TheReviewer) -> JSONResponse:
    """Every link to a review, the oldest first; never their addresses."""
    number = number_of(review_id)
    with board.db.read() as connection:
        if read.by_id(connection, number) is None:
            raise ApiError(404, "not_found", "There is no such review.")
        rows = board.review_links.of_review(connection, number)
    return listing([_document(row) for row in rows])


@router.delete("/reviews/{review_id}/links/{link_id}")
def revoke_link(review_id: str, link_id: str, board: TheBoard, actor: TheReviewer) -> JSONResponse:
    """The link opens nothing from now on."""
    if not (link_id.isascii() and link_id.isdigit() and len(link_id) < 19):
        raise ApiError(404, "not_found", "There is no such link.")
    with board.db.write() as tx:
        board.review_links.revoke(tx, number_of(review_id), int(link_id), actor.by(CHANNEL))
    return ok({"id": link_id, "revoked": True})


def _document(row: Any) -> dict[str, Any]:
    moments = ("created_at", "expires_at", "opened_at", "revoked_at")
    named = {"id": str(row["id"]), "review_id": str(row["review"]), "user": row["email"], "purpose": row["purpose"]}
    return named | {name: time(row[name]) for name in moments}
