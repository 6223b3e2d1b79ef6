"""People: who they are, what role they have, how their password is set and checked."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, select, update

from board.access import passwords
from board.access.errors import AccessError
from board.access.models import sessions, setup_links, users
from board.access.rights import Role
from board.db.clock import now
from board.db.insert import insert_once

# Enough to catch slips, not a grammar of addresses: whether an address works only a mail can tell.
_EMAIL = re.compile(r"[^@\s,;:<>()\[\]\"\\]+@[^@\s,;:<>()\[\]\"\\.]+(\.[^@\s,;:<>()\[\]\"\\.]+)*")
_EMAIL_LENGTH = 200
_OWNER: ColumnElement[bool] = (
    (users.c.role == Role.OWNER) & users.c.disabled.is_(False) & users.c.password_hash.is_not(None)
)


@dataclass(frozen=True, slots=True)
class Person:
    """A user as it is shown: without the password's hash. has_password: False until the set-up link was used."""

    id: int
    email: str
    role: str
    lang: str | None
    disabled: bool
    has_password: bool
    created_at: datetime


_SHOWN = [*(c for c in users.c if c.name != "password_hash"), users.c.password_hash.is_not(None).label("has_password")]


def add(tx: Connection, email: str, role: str = Role.VIEWER) -> Person:
    """A new user, who cannot sign in before a set-up link was used. AccessError: bad address or role, address taken."""
    email = checked_email(email)
    row = {"email": email, "role": _checked_role(role), "disabled": False, "created_at": now()}
    made = insert_once(tx, users, "email", row)
    if made is None:
        raise AccessError(
            "There is a user with the address {email} already.", code="email_taken", field="email", email=email
        )
    return get(tx, made["id"])


def get(connection: Connection, user_id: int) -> Person:
    """AccessError when there is no such user."""
    row = connection.execute(select(*_SHOWN).where(users.c.id == user_id)).mappings().one_or_none()
    if row is None:
        raise AccessError("There is no such user.", code="not_found")
    return _person(row)


def usable(connection: Connection, user_id: int) -> Person:
    """A user who is not disabled. AccessError: no such user, or disabled."""
    person = get(connection, user_id)
    if person.disabled:
        raise AccessError("{email} is disabled; enable the user first.", code="user_disabled", email=person.email)
    return person


def find_by_email(connection: Connection, email: str) -> Person | None:
    """The user with this address, in whatever case it is written."""
    email = _normal(email)
    if _has_control(email):  # no address has them, and PostgreSQL takes no NUL
        return None
    row = connection.execute(select(*_SHOWN).where(users.c.email == email)).mappings().one_or_none()
    return None if row is None else _person(row)


def list_users(connection: Connection) -> list[Person]:
    """All users by address, disabled ones too."""
    return [_person(row) for row in connection.execute(select(*_SHOWN).order_by(users.c.email)).mappings()]


def has_owner(connection: Connection) -> bool:
    """Whether somebody can sign in as owner."""
    return connection.execute(select(users.c.id).where(_OWNER).limit(1)).first() is not None


def set_role(tx: Connection, user_id: int, role: str) -> None:
    """Holds at the user's next request. AccessError: no such role or user, or the last owner would be lost."""
    role = _checked_role(role)
    get(tx, user_id)
    if role != Role.OWNER:
        _keep_an_owner(tx, user_id)
    tx.execute(update(users).where(users.c.id == user_id).values(role=role))


def set_lang(tx: Connection, user_id: int, lang: str | None) -> None:
    """The language of the user's pages and mails, such as `zh_CN`; None for the installation's."""
    tx.execute(update(users).where(users.c.id == user_id).values(lang=lang))


def disable(tx: Connection, user_id: int) -> None:
    """Ends the user's sessions and set-up links at once. AccessError: no such user, or the last owner."""
    get(tx, user_id)
    _keep_an_owner(tx, user_id)
    tx.execute(update(users).where(users.c.id == user_id).values(disabled=True))
    tx.execute(delete(sessions).where(sessions.c.user == user_id))
    tx.execute(delete(setup_links).where(setup_links.c.user == user_id))


def enable(tx: Connection, user_id: int) -> None:
    """Undoes `disable`; the password is the former one. AccessError: no such user."""
    get(tx, user_id)
    tx.execute(update(users).where(users.c.id == user_id).values(disabled=False))


def set_password(tx: Connection, user_id: int, password: str) -> None:
    """Ends all sessions of the user, so that whoever knew the former password is out. AccessError: bad password."""
    hashed = passwords.hash_password(password)
    get(tx, user_id)
    tx.execute(update(users).where(users.c.id == user_id).values(password_hash=hashed))
    tx.execute(delete(sessions).where(sessions.c.user == user_id))


def verify(connection: Connection, email: str, password: str) -> Person | None:
    """The user, if the password is right. Unknown, disabled and not yet set-up users take as long to be refused."""
    person = find_by_email(connection, email)
    usable = person is not None and not person.disabled
    stored = _stored_hash(connection, person.id) if person is not None and usable else None
    return person if passwords.matches(stored, password) else None


def renew_hash(tx: Connection, user_id: int, password: str) -> None:
    """After a successful `verify`: hash the password anew where the stored hash has weaker parameters than today's."""
    stored = _stored_hash(tx, user_id)
    if stored is not None and passwords.is_outdated(stored):
        hashed = passwords.hash_password(password)
        # Only over the hash that was read: a password set meanwhile stays.
        this_hash = (users.c.id == user_id) & (users.c.password_hash == stored)
        tx.execute(update(users).where(this_hash).values(password_hash=hashed))


def checked_email(email: str) -> str:
    """The address in the form it is stored. AccessError when it is none."""
    email = _normal(email)
    if _has_control(email) or len(email) > _EMAIL_LENGTH or not _EMAIL.fullmatch(email):
        raise AccessError(
            "This is not a mail address; write it like name@example.org.", code="bad_email", field="email"
        )
    return email


def _checked_role(role: str) -> str:
    allowed = [known.value for known in Role]
    if role not in allowed:
        raise AccessError(
            "“{role}” is not a role; the roles are {allowed}.",
            code="bad_role",
            field="role",
            role=role,
            allowed=", ".join(allowed),
        )
    return Role(role).value


def _keep_an_owner(tx: Connection, user_id: int) -> None:
    """Raise AccessError if this user is the only owner. Locks the owners: two who demote each other wait in line."""
    owners = tx.execute(select(users.c.id).where(_OWNER).order_by(users.c.id).with_for_update()).scalars().all()
    if list(owners) == [user_id]:
        raise AccessError("This is the only owner; make another user owner first.", code="last_owner")


def _stored_hash(connection: Connection, user_id: int) -> str | None:
    return connection.execute(select(users.c.password_hash).where(users.c.id == user_id)).scalar_one_or_none()


def _has_control(email: str) -> bool:
    """Control, invisible, surrogate and unassigned characters: two addresses must not look the same."""
    return any(unicodedata.category(character)[0] == "C" for character in email)


def _normal(email: str) -> str:
    return unicodedata.normalize("NFC", email).strip().lower()


def _person(row: RowMapping) -> Person:
    return Person(**row)
