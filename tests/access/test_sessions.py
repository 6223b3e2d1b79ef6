from collections.abc import Callable

import pytest
from sqlalchemy import select

from board.access import sessions, users
from board.access.models import sessions as table
from board.access.rights import Act
from board.db.engine import Database

DAY = 86400.0


@pytest.fixture
def person(db: Database) -> users.Person:
    with db.write() as tx:
        made = users.add(tx, "li@example.org", "reviewer")
        users.set_lang(tx, made.id, "zh_CN")
        return made


def found(db: Database, token: str) -> sessions.Session | None:
    with db.read() as connection:
        return sessions.find(connection, token)


def test_a_session_is_the_person_with_the_role_of_this_moment(db: Database, person: users.Person) -> None:
    with db.write() as tx:
        token, csrf = sessions.start(tx, person.id)
    session = found(db, token)
    assert session is not None
    assert (session.user_id, session.lang, session.csrf) == (person.id, "zh_CN", csrf)
    assert session.actor.identity == "user:li@example.org"
    assert session.actor.may(Act.REVIEW)
    with db.write() as tx:
        users.set_role(tx, person.id, "viewer")
    session = found(db, token)
    assert session is not None
    assert not session.actor.may(Act.REVIEW)


def test_only_its_own_csrf_token_is_accepted(db: Database, person: users.Person) -> None:
    with db.write() as tx:
        token, csrf = sessions.start(tx, person.id)
        _, other = sessions.start(tx, person.id)
    session = found(db, token)
    assert session is not None
    assert session.accepts(csrf)
    for wrong in (other, "", None, csrf[:-1], "\ud800"):
        assert not session.accepts(wrong)


def test_the_token_is_kept_as_a_hash_and_nothing_secret_is_shown(db: Database, person: users.Person) -> None:
    with db.write() as tx:
        token, csrf = sessions.start(tx, person.id)
        assert token not in repr(tx.execute(select(table)).all())
    assert csrf not in repr(found(db, token))
    assert len(token) == 43


def test_a_session_lasts_14_days_from_its_last_use(
    db: Database, person: users.Person, at: Callable[[float], None]
) -> None:
    with db.write() as tx:
        token, _ = sessions.start(tx, person.id)
        idle, _ = sessions.start(tx, person.id)
    at(13 * DAY)
    session = found(db, token)
    assert session is not None
    assert session.renewal_due
    with db.write() as tx:
        sessions.renew(tx, token)
    at(14 * DAY + 60)
    assert found(db, idle) is None
    assert found(db, token) is not None
    at(27 * DAY + 60)
    assert found(db, token) is None


def test_renewal_is_due_once_a_day(db: Database, person: users.Person, at: Callable[[float], None]) -> None:
    with db.write() as tx:
        token, _ = sessions.start(tx, person.id)
    due = []
    for days in (0, 0.9, 1.1):
        at(days * DAY)
        session = found(db, token)
        assert session is not None
        due.append(session.renewal_due)
    assert due == [False, False, True]
    with db.write() as tx:
        sessions.renew(tx, token)
    session = found(db, token)
    assert session is not None
    assert not session.renewal_due


def test_what_is_over_cannot_be_renewed(db: Database, person: users.Person, at: Callable[[float], None]) -> None:
    with db.write() as tx:
        token, _ = sessions.start(tx, person.id)
    at(14 * DAY + 60)
    with db.write() as tx:
        sessions.renew(tx, token)
        assert sessions.find(tx, token) is None
        sessions.start(tx, person.id)  # sweeps what is over
        assert len(tx.execute(select(table)).all()) == 1


def test_a_session_begun_in_the_moment_of_disabling_opens_nothing(db: Database, person: users.Person) -> None:
    with db.write() as tx:
        users.disable(tx, person.id)
    with db.write() as tx:
        token, _ = sessions.start(tx, person.id)
        assert sessions.find(tx, token) is None


def test_signing_out_ends_this_session_alone(db: Database, person: users.Person) -> None:
    with db.write() as tx:
        tokens = [sessions.start(tx, person.id)[0] for _ in range(3)]
        sessions.end(tx, tokens[0])
        assert [sessions.find(tx, token) is not None for token in tokens] == [False, True, True]


@pytest.mark.parametrize("token", ["", "unknown", "\udc80"])
def test_an_unknown_cookie_is_nobody(db: Database, person: users.Person, token: str) -> None:
    with db.write() as tx:
        sessions.start(tx, person.id)
    assert found(db, token) is None
