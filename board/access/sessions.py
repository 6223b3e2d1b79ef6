"""Sessions of signed-in people: a random token in a cookie, its hash here, 14 days from the last use."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from sqlalchemy import Connection, delete, insert, select, update

from board.access.models import sessions, users
from board.access.rights import Actor, person_actor
from board.access.tokens import digest, new_token
from board.db.clock import now

LIFETIME = 14 * 86400.0  # seconds since the last use; the cookie's Max-Age is the same
RENEW_EVERY = 86400.0  # seconds; a write at every page view would buy nothing


@dataclass(frozen=True, slots=True)
class Session:
    """Who is signed in. csrf: to be repeated by every form. renewal_due: `renew` should be called."""

    actor: Actor
    user_id: int
    lang: str | None
    renewal_due: bool
    csrf: str = field(repr=False)

    def accepts(self, csrf: str | None) -> bool:
        """Whether a form's token is the session's own."""
        return csrf is not None and hmac.compare_digest(digest(csrf), digest(self.csrf))


def start(tx: Connection, user_id: int) -> tuple[str, str]:
    """A new session: the token for the cookie, and the CSRF token."""
    tx.execute(delete(sessions).where(sessions.c.expires_at <= now()))
    token, csrf = new_token(), new_token()
    tx.execute(
        insert(sessions).values(
            token_hash=digest(token), user=user_id, csrf=csrf, created_at=now(), expires_at=now(LIFETIME)
        )
    )
    return token, csrf


def find(connection: Connection, token: str) -> Session | None:
    """The session behind a cookie, with the role of this moment; None when it is unknown, over or the user disabled."""
    row = connection.execute(
        select(
            users.c.id,
            users.c.email,
            users.c.role,
            users.c.lang,
            sessions.c.csrf,
            (sessions.c.expires_at <= now(LIFETIME - RENEW_EVERY)).label("renewal_due"),
        )
        .join_from(sessions, users, sessions.c.user == users.c.id)
        .where(sessions.c.token_hash == digest(token), sessions.c.expires_at > now(), users.c.disabled.is_(False))
    ).one_or_none()
    if row is None:
        return None
    actor = person_actor(row.email, row.role, row.lang)
    return Session(actor, row.id, row.lang, bool(row.renewal_due), row.csrf)


def renew(tx: Connection, token: str) -> None:
    """14 days from now again; a session that is over stays over."""
    tx.execute(
        update(sessions)
        .where(sessions.c.token_hash == digest(token), sessions.c.expires_at > now())
        .values(expires_at=now(LIFETIME))
    )


def end(tx: Connection, token: str) -> None:
    """Sign out here."""
    tx.execute(delete(sessions).where(sessions.c.token_hash == digest(token)))
