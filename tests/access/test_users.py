import contextlib
import threading

import pytest
from argon2 import PasswordHasher
from sqlalchemy import select, update

from board.access import links, passwords, sessions, users
from board.access.errors import AccessError
from board.access.models import users as table
from board.db.engine import Database
from tests.access.conftest import PASSWORD


def owner(db: Database, email: str = "owner@example.org") -> users.Person:
    with db.write() as tx:
        person = users.add(tx, email, "owner")
        users.set_password(tx, person.id, PASSWORD)
        return users.get(tx, person.id)


def test_an_address_is_kept_in_small_letters_and_found_in_any(db: Database) -> None:
    with db.write() as tx:
        made = users.add(tx, "  Li.Wei@Example.ORG ", "reviewer")
        assert made.email == "li.wei@example.org"
        assert (made.role, made.has_password, made.disabled) == ("reviewer", False, False)
        assert users.find_by_email(tx, "LI.WEI@example.org") == made
        assert users.list_users(tx) == [made]


@pytest.mark.parametrize(
    "email",
    [
        "",
        "a",
        "@b.org",
        "a@",
        "a b@c.org",
        "a@b@c.org",
        "a@b..org",
        "a@.org",
        "a@b.org,c@d.org",
        "a@b.org\0",
        "Li <li@b.org>",
        "a\u200b@b.org",
        "\ud800@b.org",
        "a" * 195 + "@b.org",
    ],
)
def test_what_is_no_address_is_refused(db: Database, email: str) -> None:
    with db.write() as tx:
        with pytest.raises(AccessError, match=r"name@example\.org") as caught:
            users.add(tx, email, "viewer")
        assert users.list_users(tx) == []
        assert users.find_by_email(tx, email) is None
    assert (caught.value.code, caught.value.field) == ("bad_email", "email")


@pytest.mark.parametrize("email", ["a+b@c.org", "o'neill@c.org", "用户@例子.公司", "root@localhost"])
def test_unusual_addresses_are_taken(db: Database, email: str) -> None:
    with db.write() as tx:
        assert users.add(tx, email, "viewer").email == email


def test_an_address_is_taken_once(db: Database) -> None:
    with db.write() as tx:
        users.add(tx, "a@b.org", "viewer")
        with pytest.raises(AccessError, match=r"a@b\.org already"):
            users.add(tx, "A@B.org", "owner")
        assert [person.role for person in users.list_users(tx)] == ["viewer"]


def test_an_unknown_role_is_refused_with_the_known_ones(db: Database) -> None:
    with db.write() as tx, pytest.raises(AccessError, match="owner, operator, reviewer, viewer") as caught:
        users.add(tx, "a@b.org", "boss")
    assert caught.value.field == "role"


def test_the_right_password_and_nothing_else_opens(db: Database) -> None:
    person = owner(db)
    with db.read() as connection:
        assert users.verify(connection, "Owner@example.org", PASSWORD) == person
        assert users.verify(connection, "owner@example.org", PASSWORD + "x") is None
        assert users.verify(connection, "nobody@example.org", PASSWORD) is None
        assert users.verify(connection, "\ud800", PASSWORD) is None


def test_an_unknown_address_costs_as_much_work_as_a_known_one(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    owner(db)
    with db.write() as tx:
        users.add(tx, "pending@example.org", "viewer")
    hashed: list[str | None] = []
    real = PasswordHasher.verify

    def count(self: PasswordHasher, stored: str, password: bytes) -> bool:
        hashed.append(stored[:20])
        return real(self, stored, password)

    monkeypatch.setattr(PasswordHasher, "verify", count)
    with db.read() as connection:
        for email in ("owner@example.org", "pending@example.org", "nobody@example.org"):
            assert users.verify(connection, email, "a wrong password") is None
    assert len(hashed) == 3
    assert len(set(hashed)) == 1  # also with the same parameters


def test_a_disabled_user_is_out_at_once(db: Database) -> None:
    owner(db)
    other = owner(db, "other@example.org")
    with db.write() as tx:
        token, _ = sessions.start(tx, other.id)
        link = links.user_link(tx, other.id)
        users.disable(tx, other.id)
    with db.write() as tx:
        assert sessions.find(tx, token) is None
        assert links.look(tx, link) is None
        assert users.verify(tx, other.email, PASSWORD) is None
        users.enable(tx, other.id)
        assert users.verify(tx, other.email, PASSWORD) is not None
        assert sessions.find(tx, token) is None


def test_the_last_owner_stays_owner(db: Database) -> None:
    only = owner(db)
    with db.write() as tx:
        users.add(tx, "pending@example.org", "owner")  # cannot sign in yet, so does not count
        for lose in (lambda: users.disable(tx, only.id), lambda: users.set_role(tx, only.id, "viewer")):
            with pytest.raises(AccessError, match="only owner"):
                lose()
        users.set_role(tx, only.id, "owner")
        assert users.get(tx, only.id) == only
    owner(db, "other@example.org")
    with db.write() as tx:
        users.set_role(tx, only.id, "viewer")
        assert users.get(tx, only.id).role == "viewer"


def test_two_owners_who_demote_each_other_leave_one(db: Database) -> None:
    pair = [owner(db, "a@example.org"), owner(db, "b@example.org")]
    both_are_through, refused = threading.Barrier(2), []

    def demote(person: users.Person) -> None:
        try:
            with db.write() as tx:
                users.set_role(tx, person.id, "viewer")
                # Were nobody made to wait, both would meet here before either commits.
                with contextlib.suppress(threading.BrokenBarrierError):
                    both_are_through.wait(1)
        except AccessError as error:
            refused.append(error.code)

    threads = [threading.Thread(target=demote, args=(person,)) for person in pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert refused == ["last_owner"]
    with db.read() as connection:
        assert users.has_owner(connection)


def test_an_owner_is_one_who_can_sign_in(db: Database) -> None:
    with db.write() as tx:
        assert not users.has_owner(tx)
        person = users.add(tx, "a@b.org", "owner")
        assert not users.has_owner(tx)
        users.set_password(tx, person.id, PASSWORD)
        assert users.has_owner(tx)


def test_a_new_password_ends_all_sessions(db: Database) -> None:
    person = owner(db)
    with db.write() as tx:
        token, _ = sessions.start(tx, person.id)
        users.set_password(tx, person.id, "another good one")
        assert sessions.find(tx, token) is None
        assert users.verify(tx, person.email, PASSWORD) is None
        assert users.verify(tx, person.email, "another good one") is not None


def test_a_refused_password_changes_nothing(db: Database) -> None:
    person = owner(db)
    with db.write() as tx:
        token, _ = sessions.start(tx, person.id)
        with pytest.raises(AccessError, match="at least 10"):
            users.set_password(tx, person.id, "short")
        assert sessions.find(tx, token) is not None
        assert users.verify(tx, person.email, PASSWORD) is not None


def test_a_weak_hash_is_renewed_and_a_strong_one_left(db: Database) -> None:
    person = owner(db)
    weak = PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1).hash(PASSWORD)

    def stored() -> str:
        with db.read() as connection:
            return str(connection.execute(select(table.c.password_hash)).scalar_one())

    with db.write() as tx:
        tx.execute(update(table).values(password_hash=weak))
        users.renew_hash(tx, person.id, PASSWORD)
    renewed = stored()
    assert not passwords.is_outdated(renewed)
    with db.write() as tx:
        assert users.verify(tx, person.email, PASSWORD) is not None
        users.renew_hash(tx, person.id, PASSWORD)
    assert stored() == renewed


def test_nothing_shown_of_a_user_holds_the_hash(db: Database) -> None:
    assert "argon2" not in repr(owner(db))


def test_a_user_who_is_not_there_is_told(db: Database) -> None:
    with db.write() as tx:
        for ask in (
            lambda: users.get(tx, 99),
            lambda: users.set_role(tx, 99, "viewer"),
            lambda: users.disable(tx, 99),
            lambda: users.enable(tx, 99),
            lambda: users.set_password(tx, 99, PASSWORD),
            lambda: links.user_link(tx, 99),
        ):
            with pytest.raises(AccessError, match="no such user"):
                ask()


def test_the_language_is_kept(db: Database) -> None:
    person = owner(db)
    with db.write() as tx:
        users.set_lang(tx, person.id, "zh_CN")
        assert users.get(tx, person.id).lang == "zh_CN"
