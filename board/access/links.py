"""One-time set-up links: the first owner's, and those by which a user sets the password, the first or a new one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update

from board.access import users
from board.access.errors import AccessError
from board.access.models import setup_links
from board.access.rights import Role
from board.access.tokens import digest, new_token
from board.db.clock import now

LIFETIME = 24 * 3600.0  # seconds; long enough for a colleague in another time zone, short in a chat's history
_OPEN = setup_links.c.used_at.is_(None) & (setup_links.c.expires_at > now())


@dataclass(frozen=True, slots=True)
class SetupLink:
    """A link that can be used now. person: whose password it sets; None: it makes the first owner."""

    person: users.Person | None
    expires_at: datetime


def owner_link(tx: Connection) -> str | None:
    """A fresh token that makes the first owner. None when somebody can sign in as owner.

    Former ones stay good for their 24 hours: every process prints one when it starts, and the one that somebody has
    already copied must not end because of that. The first that is used ends all of them.
    """
    if users.has_owner(tx):
        return None
    return _make(tx, None)


def user_link(tx: Connection, user_id: int) -> str:
    """A fresh token by which this user sets a password; former ones end. AccessError: no such user, or disabled."""
    users.usable(tx, user_id)
    tx.execute(delete(setup_links).where(setup_links.c.user == user_id, setup_links.c.used_at.is_(None)))
    return _make(tx, user_id)


def address(public_url: str, token: str) -> str:
    """The whole link as it is given to a person."""
    return f"{public_url.rstrip('/')}/setup/{token}"


def look(connection: Connection, token: str) -> SetupLink | None:
    """The link, without using it; None when it is unknown, used, replaced or expired."""
    row = connection.execute(
        select(setup_links.c.user, setup_links.c.expires_at).where(setup_links.c.token_hash == digest(token), _OPEN)
    ).one_or_none()
    if row is None or (row.user is None and users.has_owner(connection)):
        return None
    return SetupLink(None if row.user is None else users.get(connection, row.user), row.expires_at)


def use(tx: Connection, token: str, *, email: str | None = None, password: str) -> users.Person:
    """Set the password; of two at once one wins. email: the first owner's address, ignored for a user's own link.

    AccessError: the link is void, the password or the address is bad; the link then stays as it was if the
    transaction is rolled back.
    """
    link = look(tx, token)
    if link is None:
        raise _void()
    if link.person is None:
        email = users.checked_email(email or "")
    # All open links of the same purpose end with this one; a second user of any of them waits here and hits no row.
    same = setup_links.c.user.is_(None) if link.person is None else setup_links.c.user == link.person.id
    ended = tx.execute(
        update(setup_links).where(same, _OPEN).values(used_at=now()).returning(setup_links.c.token_hash)
    ).scalars()
    if digest(token) not in list(ended):
        raise _void()
    person = link.person or _first_owner(tx, email or "")
    users.set_password(tx, person.id, password)
    return users.get(tx, person.id)


def _first_owner(tx: Connection, email: str) -> users.Person:
    """A new owner, or a user who was added on the command line but has no password yet."""
    if users.has_owner(tx):
        raise _void()
    person = users.find_by_email(tx, email)
    if person is None:
        return users.add(tx, email, Role.OWNER)
    if person.has_password or person.disabled:
        raise AccessError(
            "There is a user with the address {email} already.", code="email_taken", field="email", email=email
        )
    users.set_role(tx, person.id, Role.OWNER)
    return person


def _make(tx: Connection, user_id: int | None) -> str:
    token = new_token()
    tx.execute(delete(setup_links).where(setup_links.c.expires_at <= now()))
    tx.execute(insert(setup_links).values(token_hash=digest(token), user=user_id, expires_at=now(LIFETIME)))
    return token


def _void() -> AccessError:
    return AccessError("This link was used already or has expired; ask for a new one.", code="link_void")
