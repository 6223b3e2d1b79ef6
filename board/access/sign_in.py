"""Signing in with address and password: the brake, the check, the session."""

from __future__ import annotations

from board.access import sessions, users
from board.access.errors import AccessError
from board.access.throttle import Throttle
from board.db.engine import Database


def sign_in(db: Database, throttle: Throttle, email: str, password: str) -> tuple[str, str]:
    """A new session's token and CSRF token. throttle: one for the process. Takes about 0.1 s: call it in a thread.

    AccessError in the same words for an unknown address and a wrong password; TooManyTries after many failures.
    """
    throttle.begin(email)
    with db.read() as connection:
        person = users.verify(connection, email, password)
    if person is None:
        raise AccessError("The mail address or the password is wrong.", code="sign_in_failed")
    throttle.succeeded(email)
    with db.write() as tx:
        users.renew_hash(tx, person.id, password)
        return sessions.start(tx, person.id)
