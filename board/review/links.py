"""Links by which one person opens one review without signing in: made, listed, withdrawn.

What is done by such a link is in `by_link.py`. Only the person whom a link was made for should ever hold it, for low
risks are decided by it in that person's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping, insert, select, update

from board.access import users
from board.access.models import users as user_rows
from board.access.rights import person_actor
from board.access.tokens import digest, new_token
from board.catalogue.store import Catalogue
from board.db.clock import now, read_now
from board.review import standing
from board.review.models import review_links, reviews
from board.review.verdict import DecisionRefused, too_late
from board.tasks.history import By, record
from board.tasks.models import tasks

# As long as a weekend: a mail of Friday evening is read on Monday morning.
LONGEST = timedelta(hours=72)
# A review that is due, or nearly, is asked for all the more: its link must be good for the time to read it.
LEAST = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Issued:
    """A link that was made just now: `url` is shown this once."""

    id: int
    url: str
    email: str
    expires_at: datetime


class Links:
    """public_url: the board's own address as people reach it (BOARD_PUBLIC_URL)."""

    def __init__(self, catalogue: Catalogue, public_url: str) -> None:
        self._catalogue, self._public_url = catalogue, public_url

    def issue(
        self, tx: Connection, review_id: int, user_id: int, *, purpose: str = "notice", by: By | None = None
    ) -> Issued:
        """A fresh link to an open review for somebody who may decide it; former ones stay good.

        Writes one row in the caller's transaction, and takes no lock unless `by` is given. It is good until the review
        is due, at least for an hour and at most for 72. purpose: what it is made for, in one word of at most 24
        characters. by: who asked for it, to be told in the task's history; a notice has a word of its own there.

        Raises DecisionRefused (not_found, already_decided), AccessError (no such user, or disabled), NotEligible.
        """
        review = tx.execute(select(reviews).where(reviews.c.id == review_id)).mappings().first()
        if review is None:
            raise DecisionRefused("not_found", "There is no such review.")
        task = tx.execute(select(tasks).where(tasks.c.id == review["task"])).mappings().one()
        if review["status"] != "open":
            raise too_late(review, task)
        person = users.usable(tx, user_id)
        actor = person_actor(person.email, person.role, person.lang)
        standing.of(tx, actor, standing.question(tx, self._catalogue, task, review))
        token, moment = new_token(), read_now(tx)
        until = min(moment + LONGEST, max(review["due_at"] or moment + LONGEST, moment + LEAST))
        values = {
            "token_hash": digest(token),
            "review": review_id,
            "user": person.id,
            "purpose": purpose,
            "created_at": moment,
            "expires_at": until,
            "acts": 0,
        }
        made = tx.execute(insert(review_links).values(values).returning(review_links.c.id)).scalar_one()
        if by is not None:
            details = {"review": str(review_id), "link": str(made), "user": actor.identity}
            record(tx, task["id"], "link_made", by, data=details)
        return Issued(made, f"{self._public_url.rstrip('/')}/r/{token}", person.email, until)

    @staticmethod
    def of_review(connection: Connection, review_id: int) -> list[RowMapping]:
        """Every link to one review, the oldest first, with the `email` of its person; never a token."""
        shown = [column for column in review_links.c if column.name != "token_hash"]
        query = select(*shown, user_rows.c.email).join(user_rows, user_rows.c.id == review_links.c.user)
        query = query.where(review_links.c.review == review_id).order_by(review_links.c.id)
        return list(connection.execute(query).mappings())

    @staticmethod
    def revoke(tx: Connection, review_id: int, link_id: int, by: By) -> None:
        """The link opens nothing from now on; again: nothing happens. Raises DecisionRefused (not_found)."""
        same = (review_links.c.id == link_id) & (review_links.c.review == review_id)
        query = select(reviews.c.task, user_rows.c.email).join_from(review_links, reviews).join(user_rows)
        found = tx.execute(query.where(same)).first()
        if found is None:
            raise DecisionRefused("not_found", "There is no such link.")
        tx.execute(select(tasks.c.id).where(tasks.c.id == found.task).with_for_update())  # the task first, everywhere
        ended = tx.execute(
            update(review_links).where(same, review_links.c.revoked_at.is_(None)).values(revoked_at=now())
        )
        if ended.rowcount:
            details = {"review": str(review_id), "link": str(link_id), "user": f"user:{found.email}"}
            record(tx, found.task, "link_revoked", by, data=details)
