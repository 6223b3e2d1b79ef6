"""Who has a review open at the moment. It locks nothing: taking it does, and whoever is at work on it keeps it."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from board.access.rights import Actor
from board.db.clock import now
from board.db.insert import insert_once
from board.review.models import openings, reviews

# A page tells every 20 s that it is open: one lost word, and a slow moment, are no absence.
HEARD_WITHIN = 50.0


def tell(tx: Connection, review: int, actor: Actor) -> None:
    """He has it open now. When he first had it is kept. Nothing happens where there is no such review."""
    mine = openings.c.review == review, openings.c.person == actor.identity
    if tx.execute(update(openings).where(*mine).values(seen_at=now())).rowcount:
        return
    if tx.execute(select(reviews.c.id).where(reviews.c.id == review)).first() is not None:
        row = {"review": review, "person": actor.identity, "opened_at": now(), "seen_at": now()}
        insert_once(tx, openings, ("review", "person"), row)


def leave(tx: Connection, review: int, actor: Actor) -> None:
    """He has closed it."""
    mine = openings.c.review == review, openings.c.person == actor.identity
    tx.execute(update(openings).where(*mine).values(seen_at=now(-HEARD_WITHIN)))


def others(connection: Connection, review: int, actor: Actor) -> list[str]:
    """Who else has it open (`Actor.identity`), whoever came first before the others."""
    query = select(openings.c.person).where(
        openings.c.review == review,
        openings.c.person != actor.identity,
        openings.c.seen_at > now(-HEARD_WITHIN),
    )
    return list(connection.execute(query.order_by(openings.c.opened_at, openings.c.person)).scalars())
