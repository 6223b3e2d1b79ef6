import logging
import threading
from collections.abc import Callable

import pytest
from sqlalchemy import select

from board.access import links, sessions, users
from board.access.errors import AccessError
from board.access.models import setup_links
from board.access.rights import Role
from board.db.engine import Database
from tests.access.conftest import PASSWORD


def make_owner(db: Database) -> users.Person:
    with db.write() as tx:
        token = links.owner_link(tx)
        assert token is not None
        return links.use(tx, token, email="Owner@example.org", password=PASSWORD)


def test_the_first_link_makes_the_owner_and_then_there_is_no_such_link(db: Database) -> None:
    person = make_owner(db)
    assert (person.email, person.role, person.has_password) == ("owner@example.org", Role.OWNER, True)
    with db.write() as tx:
        assert users.verify(tx, "owner@example.org", PASSWORD) == person
        assert links.owner_link(tx) is None


@pytest.mark.parametrize("used", [0, 1, 2])
def test_each_start_gives_a_fresh_link_and_the_former_stay_good_until_one_is_used(db: Database, used: int) -> None:
    given: list[str] = []
    for _ in range(3):
        with db.write() as tx:
            token = links.owner_link(tx)
        assert token is not None
        given.append(token)
    assert len(set(given)) == 3
    with db.read() as connection:
        assert all(links.look(connection, token) is not None for token in given)
    with db.write() as tx:
        links.use(tx, given[used], email="a@b.org", password=PASSWORD)
    for token in given:
        with db.write() as tx, pytest.raises(AccessError, match="ask for a new one"):
            links.use(tx, token, email="other@b.org", password=PASSWORD)
    with db.read() as connection:
        assert [person.email for person in users.list_users(connection)] == ["a@b.org"]


def test_a_user_has_one_link_at_a_time(db: Database) -> None:
    with db.write() as tx:
        person = users.add(tx, "a@b.org", "viewer")
        former, fresh = links.user_link(tx, person.id), links.user_link(tx, person.id)
        assert links.look(tx, former) is None
        assert links.look(tx, fresh) is not None


def test_links_that_were_never_used_do_not_pile_up(db: Database, at: Callable[[float], None]) -> None:
    for day in range(3):
        at(day * (links.LIFETIME + 1))
        with db.write() as tx:
            links.owner_link(tx)
            assert len(tx.execute(select(setup_links)).all()) == 1


def test_looking_uses_nothing_up(db: Database) -> None:
    with db.write() as tx:
        token = links.owner_link(tx)
        assert token is not None
    for _ in range(2):
        with db.read() as connection:
            link = links.look(connection, token)
            assert link is not None
            assert link.person is None
    with db.write() as tx:
        links.use(tx, token, email="a@b.org", password=PASSWORD)


def test_a_link_serves_once(db: Database) -> None:
    with db.write() as tx:
        person = users.add(tx, "a@b.org", "reviewer")
        token = links.user_link(tx, person.id)
    with db.write() as tx:
        assert links.use(tx, token, email="ignored@b.org", password=PASSWORD).email == "a@b.org"
    with db.write() as tx:
        assert links.look(tx, token) is None
        with pytest.raises(AccessError) as caught:
            links.use(tx, token, password="another good one")
        assert caught.value.code == "link_void"
        assert users.verify(tx, "a@b.org", PASSWORD) is not None


@pytest.mark.parametrize("kind", ["owner", "user"])
def test_of_two_at_once_one_wins(db: Database, kind: str) -> None:
    with db.write() as tx:
        token = links.owner_link(tx) if kind == "owner" else links.user_link(tx, users.add(tx, "u@b.org", "viewer").id)
    assert token is not None
    start, outcomes = threading.Barrier(2), []

    def use(email: str) -> None:
        start.wait(30)
        try:
            with db.write() as tx:
                links.use(tx, token, email=email, password=f"password of {email}")
            outcomes.append(email)
        except AccessError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=use, args=(f"{name}@b.org",)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert "link_void" in outcomes
    (winner,) = [outcome for outcome in outcomes if outcome != "link_void"]
    with db.read() as connection:
        (person,) = users.list_users(connection)
        assert person.email == (winner if kind == "owner" else "u@b.org")
        assert users.verify(connection, person.email, f"password of {winner}") == person


def test_two_starts_at_once_cannot_make_two_owners(db: Database) -> None:
    """Each may have printed a link, neither having seen the other's: the first one used ends both."""
    if db.is_sqlite:
        with db.write() as tx:
            tokens = [links.owner_link(tx)]
    else:
        with db.write() as one, db.write() as two:
            tokens = [links.owner_link(one), links.owner_link(two)]
    for number, token in enumerate(tokens):
        assert token is not None
        if number == 0:
            with db.write() as tx:
                links.use(tx, token, email="first@b.org", password=PASSWORD)
        else:
            with db.write() as tx, pytest.raises(AccessError, match="ask for a new one"):
                links.use(tx, token, email="second@b.org", password=PASSWORD)
    with db.read() as connection:
        assert [person.email for person in users.list_users(connection)] == ["first@b.org"]


def test_an_owner_link_is_void_once_there_is_an_owner(db: Database) -> None:
    with db.write() as tx:
        token = links.owner_link(tx)
        assert token is not None
        person = users.add(tx, "a@b.org", "owner")
        users.set_password(tx, person.id, PASSWORD)
        assert links.look(tx, token) is None
        with pytest.raises(AccessError):
            links.use(tx, token, email="b@b.org", password=PASSWORD)


def test_links_last_a_day(db: Database, at: Callable[[float], None]) -> None:
    with db.write() as tx:
        token = links.user_link(tx, users.add(tx, "a@b.org", "viewer").id)
    at(links.LIFETIME - 60)
    with db.read() as connection:
        assert links.look(connection, token) is not None
    at(links.LIFETIME + 60)
    with db.write() as tx:
        assert links.look(tx, token) is None
        with pytest.raises(AccessError, match="expired"):
            links.use(tx, token, password=PASSWORD)


def test_over_links_are_swept_when_a_new_one_is_made(db: Database, at: Callable[[float], None]) -> None:
    make_owner(db)
    with db.write() as tx:
        links.user_link(tx, users.add(tx, "a@b.org", "viewer").id)
    at(links.LIFETIME + 60)
    with db.write() as tx:
        links.user_link(tx, users.add(tx, "b@b.org", "viewer").id)
        assert len(tx.execute(select(setup_links)).all()) == 1


def test_a_bad_password_or_address_leaves_the_link_as_it_was(db: Database) -> None:
    with db.write() as tx:
        token = links.owner_link(tx)
        assert token is not None
    for email, password in (("no address", PASSWORD), ("", PASSWORD), ("a@b.org", "short")):
        with pytest.raises(AccessError), db.write() as tx:
            links.use(tx, token, email=email, password=password)
    with db.write() as tx:
        assert users.list_users(tx) == []
        links.use(tx, token, email="a@b.org", password=PASSWORD)


def test_the_owner_link_takes_on_a_user_who_was_added_before(db: Database) -> None:
    with db.write() as tx:
        added = users.add(tx, "a@b.org", "viewer")
        token = links.owner_link(tx)
        assert token is not None
        person = links.use(tx, token, email="a@b.org", password=PASSWORD)
    assert (person.id, person.role) == (added.id, Role.OWNER)


def test_the_owner_link_takes_over_nobody_who_has_a_password(db: Database) -> None:
    with db.write() as tx:
        users.set_password(tx, users.add(tx, "a@b.org", "viewer").id, PASSWORD)
        token = links.owner_link(tx)
        assert token is not None
    with pytest.raises(AccessError, match="already"), db.write() as tx:
        links.use(tx, token, email="a@b.org", password="another good one")
    with db.read() as connection:
        assert users.verify(connection, "a@b.org", PASSWORD) is not None


def test_a_link_for_a_user_with_a_password_sets_a_new_one_and_ends_the_sessions(db: Database) -> None:
    person = make_owner(db)
    with db.write() as tx:
        session, _ = sessions.start(tx, person.id)
        links.use(tx, links.user_link(tx, person.id), password="another good one")
        assert sessions.find(tx, session) is None
        assert users.verify(tx, person.email, "another good one") is not None


def test_a_disabled_user_gets_no_link(db: Database) -> None:
    make_owner(db)
    with db.write() as tx:
        person = users.add(tx, "a@b.org", "viewer")
        users.disable(tx, person.id)
        with pytest.raises(AccessError, match="disabled"):
            links.user_link(tx, person.id)


@pytest.mark.parametrize("token", ["", "unknown", "\udc80", "x" * 10_000])
def test_an_unknown_link_is_void(db: Database, token: str) -> None:
    with db.write() as tx:
        assert links.look(tx, token) is None
        with pytest.raises(AccessError):
            links.use(tx, token, email="a@b.org", password=PASSWORD)


def test_the_token_is_kept_and_logged_as_a_hash_only(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("sqlalchemy.engine").setLevel(logging.INFO)
    try:
        with caplog.at_level(logging.DEBUG), db.write() as tx:
            token = links.owner_link(tx)
            assert token is not None
            links.use(tx, token, email="a@b.org", password=PASSWORD)
            stored = tx.execute(select(setup_links)).one()
    finally:
        logging.getLogger("sqlalchemy.engine").setLevel(logging.NOTSET)
    assert "INSERT INTO setup_links" in caplog.text
    for shown in (caplog.text, repr(stored)):
        assert token not in shown
        assert PASSWORD not in shown
    assert len(token) == 43


def test_the_address_of_a_link() -> None:
    assert links.address("https://board.example.org/", "abc") == "https://board.example.org/setup/abc"
