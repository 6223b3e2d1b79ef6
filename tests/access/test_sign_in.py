import pytest

from board.access import sessions, users
from board.access.errors import AccessError
from board.access.sign_in import sign_in
from board.access.throttle import LIMIT, Throttle, TooManyTries
from board.db.engine import Database
from tests.access.conftest import PASSWORD


@pytest.fixture(autouse=True)
def person(db: Database) -> users.Person:
    with db.write() as tx:
        made = users.add(tx, "li@example.org", "reviewer")
        users.set_password(tx, made.id, PASSWORD)
        return made


def test_the_right_password_starts_a_session(db: Database, person: users.Person) -> None:
    token, csrf = sign_in(db, Throttle(), "Li@Example.org", PASSWORD)
    with db.read() as connection:
        session = sessions.find(connection, token)
    assert session is not None
    assert (session.user_id, session.csrf) == (person.id, csrf)


def test_unknown_and_wrong_are_refused_in_the_same_words(db: Database) -> None:
    sentences = set()
    for email, password in (("li@example.org", "a wrong one"), ("nobody@example.org", PASSWORD), ("", "")):
        with pytest.raises(AccessError) as caught:
            sign_in(db, Throttle(), email, password)
        sentences.add(str(caught.value))
    assert len(sentences) == 1


def test_after_ten_failures_even_the_right_password_waits(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    brake = Throttle()
    for _ in range(LIMIT):
        with pytest.raises(AccessError, match="is wrong"):
            sign_in(db, brake, "li@example.org", "a wrong one")
    with pytest.raises(TooManyTries):
        sign_in(db, brake, "li@example.org", PASSWORD)


def test_success_forgives_the_failures_before_it(db: Database) -> None:
    brake = Throttle()
    for _ in range(LIMIT - 1):
        with pytest.raises(AccessError, match="is wrong"):
            sign_in(db, brake, "li@example.org", "a wrong one")
    sign_in(db, brake, "li@example.org", PASSWORD)
    with pytest.raises(AccessError, match="is wrong"):
        sign_in(db, brake, "li@example.org", "a wrong one")
