"""What a review link opens: the review for its person, and the few things that can be done with nothing but the link.

Showing is free: mail scanners and previews open every address. Deciding takes the seal of a page that was shown, which
pins the link, the version and the content, and is good for one act.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta

from sqlalchemy import Connection, RowMapping, or_, select, update

from board.access.crypto import Vault
from board.access.errors import WrongKey
from board.access.models import users as user_rows
from board.access.rights import Actor, person_actor
from board.access.tokens import digest
from board.catalogue.store import Catalogue
from board.db.clock import now, read_now
from board.db.engine import Database
from board.review import standing
from board.review.content import content_hash
from board.review.decide import Decisions
from board.review.models import review_links, reviews
from board.review.policy import LINK, NotEligible, Reason, link_suffices
from board.review.verdict import Verdict
from board.tasks.history import By, record
from board.tasks.ledger import Ledger
from board.tasks.models import tasks

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
# Who opened it nobody knows: the person, or a program that reads his mail first.
_SOMEBODY = By("system", "link", LINK)
# A scanner opens a link many times within minutes; the history says it once.
_QUIET = timedelta(hours=1)


class LinkVoid(Exception):
    """Nothing is behind this link for its holder: unknown, expired, withdrawn, or its person may not decide any more.

    Why is not told: whoever holds a wrong link learns nothing, not even whether there ever was a review.
    """


class BadSeal(Exception):
    """The form did not come from a page that this link has shown."""


class PageUsed(Exception):
    """Something was done by this link since the page was shown."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A good link. actor: its person with the rights of this moment. offered: what he may answer by it; where that is
    nothing, why says so: approved, sign_in, or closed."""

    link: RowMapping
    review: RowMapping
    task: RowMapping
    actor: Actor
    user_id: int
    offered: tuple[str, ...]
    why: str | None

    @property
    def may_undo(self) -> bool:
        """Whether what this person decided can be taken back here, as far as the link goes."""
        return link_suffices(Reason(self.review["reason"]), self.review["risk"])


class ByLink:
    def __init__(self, ledger: Ledger, catalogue: Catalogue, decisions: Decisions, vault: Vault) -> None:
        self._ledger, self._catalogue, self._decisions, self._vault = ledger, catalogue, decisions, vault

    def open(self, connection: Connection, token: str) -> Opened:
        """What the link shows now. Changes nothing. Raises LinkVoid."""
        if not _TOKEN.fullmatch(token):
            raise LinkVoid
        query = select(review_links, user_rows.c.email, user_rows.c.role, user_rows.c.lang)
        query = query.join(user_rows, user_rows.c.id == review_links.c.user).where(
            review_links.c.token_hash == digest(token),
            review_links.c.revoked_at.is_(None),
            review_links.c.expires_at > now(),
            user_rows.c.disabled.is_(False),
        )
        link = connection.execute(query).mappings().first()
        if link is None:
            raise LinkVoid
        review = connection.execute(select(reviews).where(reviews.c.id == link["review"])).mappings().one()
        task = connection.execute(select(tasks).where(tasks.c.id == review["task"])).mappings().one()
        actor = person_actor(link["email"], link["role"], link["lang"])
        offered: tuple[str, ...] = ()
        why: str | None = "closed"
        try:
            asked = standing.question(connection, self._catalogue, task, review)
            offered, why = standing.of(connection, actor, asked, LINK), None
        except NotEligible as error:
            if error.why not in ("approved", "sign_in"):
                raise LinkVoid from None
            why = error.why
        if review["status"] != "open":
            offered, why = (), "closed"
        return Opened(link, review, task, actor, link["user"], offered, why)

    def seal(self, connection: Connection, opened: Opened) -> str:
        """For the forms of one page: proves that it was shown, and what it showed. Different each time."""
        review = opened.review
        content = content_hash(connection, self._catalogue, opened.task) if review["status"] == "open" else ""
        link = opened.link
        return self._vault.encrypt(f"{LINK} {link['id']} {link['acts']} {review['version']} {content}")

    def note(self, db: Database, opened: Opened) -> None:
        """Say in the history that the link was opened, once an hour at most, however often it is."""
        with db.read() as connection:
            since = read_now(connection) - _QUIET
        last = opened.link["opened_at"]
        if last is not None and last > since:
            return
        with db.write() as tx:
            self._ledger.lock(tx, opened.task["id"])
            quiet = or_(review_links.c.opened_at.is_(None), review_links.c.opened_at <= since)
            same = review_links.c.id == opened.link["id"]
            if tx.execute(update(review_links).where(same, quiet).values(opened_at=now())).rowcount:
                details = {"review": str(opened.review["id"]), "user": opened.actor.identity}
                record(tx, opened.task["id"], "link_opened", _SOMEBODY, data=details)

    def decide(self, tx: Connection, token: str, seal: str, verdict: Verdict) -> None:
        """Decide as the link's person about what the page showed. The same again is no error.

        Raises LinkVoid, BadSeal, PageUsed, NotEligible (sign_in), DecisionRefused.
        """
        opened = self.open(tx, token)
        acts, version, content = self._sealed(opened, seal)
        pinned = replace(verdict, version=version, content_hash=content)
        if not self._decisions.decide(tx, opened.review["id"], pinned, opened.actor, LINK):
            self._count(tx, opened, acts)

    def undo(self, tx: Connection, token: str, seal: str) -> None:
        """Take back what this person decided, inside its grace time. Raises as `decide`."""
        opened = self.open(tx, token)
        acts, _, _ = self._sealed(opened, seal)
        if not opened.may_undo:
            raise NotEligible("A link is not enough to undo this; sign in.", "sign_in")
        if acts != opened.link["acts"]:
            raise PageUsed
        self._decisions.undo(tx, opened.review["id"], opened.actor, LINK)
        self._count(tx, opened, acts)

    def _sealed(self, opened: Opened, seal: str) -> tuple[int, int, str]:
        """How much had been done by the link when the page was shown, and the version and content that it showed."""
        try:
            purpose, link, acts, version, content = self._vault.decrypt(seal).split(" ")
        except (WrongKey, ValueError):
            raise BadSeal from None
        if purpose != LINK or int(link) != opened.link["id"]:
            raise BadSeal
        return int(acts), int(version), content

    @staticmethod
    def _count(tx: Connection, opened: Opened, acts: int) -> None:
        """One act more; of two with the seals of the same state, the second hits no row."""
        same = (review_links.c.id == opened.link["id"]) & (review_links.c.acts == acts)
        good = review_links.c.revoked_at.is_(None) & (review_links.c.expires_at > now())
        if not tx.execute(update(review_links).where(same, good).values(acts=acts + 1)).rowcount:
            raise PageUsed
