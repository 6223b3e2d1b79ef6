import logging
from collections.abc import Sequence

import pytest
from sqlalchemy import select

from board.access import keys
from board.access.errors import AccessError
from board.access.models import api_keys
from board.access.rights import Act
from board.db.engine import Database

BOOTSTRAP = "a bootstrap key of 24 characters or more"


def test_a_key_opens_what_its_scopes_say(db: Database) -> None:
    with db.write() as tx:
        secret = keys.create(tx, "n8n production", ["read", " submit ", "read"])
    with db.read() as connection:
        actor = keys.find(connection, secret, "")
        (listed,) = keys.list_keys(connection)
    assert actor is not None
    assert actor.identity == "key:n8n production"
    assert actor.scopes == ("submit", "read") == listed.scopes
    assert actor.may(Act.SUBMIT)
    assert not actor.may(Act.REVIEW)
    assert secret.startswith("bk_")
    assert len(secret) == 46


def test_the_secret_is_nowhere_but_in_the_answer(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("sqlalchemy.engine").setLevel(logging.INFO)
    try:
        with caplog.at_level(logging.DEBUG), db.write() as tx:
            secret = keys.create(tx, "n8n", ["submit"])
            keys.find(tx, secret, "")
    finally:
        logging.getLogger("sqlalchemy.engine").setLevel(logging.NOTSET)
    with db.read() as connection:
        stored = connection.execute(select(api_keys)).one()
        (listed,) = keys.list_keys(connection)
    assert "INSERT INTO api_keys" in caplog.text  # the log was really looked at
    for shown in (caplog.text, repr(stored), repr(listed)):
        assert secret not in shown
    assert listed.hint == secret[:8]


@pytest.mark.parametrize("wrong", ["bk_unknown", "", "Bearer", "\udc80", "密钥\0"])
def test_an_unknown_key_is_nobody(db: Database, wrong: str) -> None:
    with db.write() as tx:
        keys.create(tx, "n8n", ["admin"])
        assert keys.find(tx, wrong, "") is None
        assert keys.find(tx, wrong, BOOTSTRAP) is None


def test_the_bootstrap_key_may_everything(db: Database) -> None:
    with db.read() as connection:
        actor = keys.find(connection, BOOTSTRAP, BOOTSTRAP)
        assert keys.find(connection, BOOTSTRAP, "") is None
        assert keys.find(connection, BOOTSTRAP[:-1], BOOTSTRAP) is None
    assert actor is not None
    assert actor.identity == "key:bootstrap"
    assert actor.acts == frozenset(Act)


def test_a_revoked_key_is_refused_listed_and_keeps_its_name(db: Database) -> None:
    with db.write() as tx:
        secret, other = keys.create(tx, "n8n", ["submit"]), keys.create(tx, "dify", ["submit"])
        keys.revoke(tx, "n8n")
    with db.write() as tx:
        assert keys.find(tx, secret, "") is None
        assert keys.find(tx, other, "") is not None
        dify, n8n = keys.list_keys(tx)
        assert (dify.revoked_at, n8n.revoked_at is None) == (None, False)
        keys.revoke(tx, "n8n")
        assert keys.list_keys(tx)[1].revoked_at == n8n.revoked_at
        with pytest.raises(AccessError, match="take another name"):
            keys.create(tx, "n8n", ["admin"])


@pytest.mark.parametrize("name", ["unknown", "\0", ""])
def test_revoking_what_is_not_there_is_told(db: Database, name: str) -> None:
    with db.write() as tx, pytest.raises(AccessError, match="no key named") as caught:
        keys.revoke(tx, name)
    assert (caught.value.code, caught.value.field) == ("not_found", "name")


@pytest.mark.parametrize(
    "name", ["", " ", "a,b", "a:b", "a\nb", "a\0", "a  b", "x" * 121, "a\u200bb", "bootstrap", "Bootstrap"]
)
def test_a_bad_name_is_refused(db: Database, name: str) -> None:
    with db.write() as tx:
        with pytest.raises(AccessError) as caught:
            keys.create(tx, name, ["submit"])
        assert keys.list_keys(tx) == []
    assert caught.value.field == "name"


@pytest.mark.parametrize("name", ["n8n", "web-shop_2.0", "线索表单", "My n8n key", "x" * 120])
def test_a_good_name_is_taken_as_it_is(db: Database, name: str) -> None:
    with db.write() as tx:
        keys.create(tx, f" {name} ", ["submit"])
        assert [key.name for key in keys.list_keys(tx)] == [name]


@pytest.mark.parametrize(
    ("scopes", "sentence"),
    [
        ([], "at least one scope; the scopes are submit, read, work, review, admin"),
        ([" "], "at least one scope"),
        (["submit", "root"], "“root” is not a scope; the scopes are submit, read"),
        (["Submit"], "“Submit” is not a scope"),
        (["{x}"], "“{x}” is not a scope"),
    ],
)
def test_bad_scopes_are_refused_with_the_good_ones(db: Database, scopes: Sequence[str], sentence: str) -> None:
    with db.write() as tx, pytest.raises(AccessError) as caught:
        keys.create(tx, "n8n", scopes)
    assert sentence in str(caught.value)
    assert (caught.value.code, caught.value.field) == ("bad_scope", "scopes")
    assert caught.value.text.format(**caught.value.values) == str(caught.value)


@pytest.mark.parametrize(
    ("authorization", "x_api_key", "key"),
    [
        ("Bearer k1", None, "k1"),
        ("bearer k1", None, "k1"),
        ("BEARER   k1 ", None, "k1"),
        ("Bearer Bearer k1", None, "k1"),
        ("Bearer bearer Bearer k1", None, "k1"),
        ("Bearer a key with spaces", None, "a key with spaces"),
        (None, "k2", "k2"),
        (None, " k2 ", "k2"),
        ("", "k2", "k2"),
        ("Bearer", "k2", "k2"),
        ("Bearer Bearer", "k2", "k2"),
        ("Basic dTpw", "k2", "k2"),
        ("Bearer k1", "k2", "k1"),
        ("", "", None),
        (None, None, None),
        ("Bearer ", None, None),
        ("Basic dTpw", None, None),
        ("k1", None, None),
    ],
)
def test_where_the_key_stands_in_a_request(authorization: str | None, x_api_key: str | None, key: str | None) -> None:
    assert keys.bearer(authorization, x_api_key) == key
