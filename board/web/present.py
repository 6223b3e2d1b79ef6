"""What an open review tells while it is looked at: that somebody is here, is at work, or has left."""

from __future__ import annotations

from contextlib import suppress

from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from board.review import presence, read
from board.review.decide import DecisionRefused
from board.review.policy import NotEligible
from board.web.attendance import attendance
from board.web.forms import OwnForm
from board.web.review import row_of
from board.web.routing import PageRouter
from board.web.visit import CHANNEL, TheReader

router = PageRouter()


@router.act("/reviews/{review_id}/here")
def here(review_id: str, form: OwnForm, visit: TheReader) -> Response:
    """does: empty (it is open), active (something was pressed), writing (a decision is being written), left.

    Writing takes the review where nobody has it; being active keeps it for whoever has. The answer says who else has it
    open, and who has taken it.
    """
    board, review, does = visit.board, row_of(visit, review_id)["id"], form.one("does")
    with board.db.write() as tx:
        if does == "left":
            presence.leave(tx, review, visit.actor)
            return Response(status_code=204)
        presence.tell(tx, review, visit.actor)
        if does == "active":
            board.holding.renew(tx, review, visit.actor)
    if does == "writing":
        with suppress(NotEligible, DecisionRefused), board.db.write() as tx:
            board.holding.claim(tx, review, visit.actor, CHANNEL, note=None)
    with board.db.read() as connection:
        row = read.by_id(connection, review)
        if row is None:  # archived meanwhile
            raise HTTPException(404)
        return JSONResponse(attendance(visit, connection, row))
