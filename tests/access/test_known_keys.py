"""A key is looked up once a second at most, and what it may do no longer is forgotten at once where that is decided."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import event, update

from board.access import keys, known_keys
from board.access.known_keys import KnownKeys
from board.access.models import api_keys
from board.db.clock import now
from board.db.engine import Database


@pytest.fixture
def asked(db: Database) -> Iterator[list[str]]:
    """Every look into the table of keys."""
    looks: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        if "FROM api_keys" in statement and statement.startswith("SELECT"):
            looks.append(statement)

    event.listen(db._reader, "before_cursor_execute", note)
    yield looks
    event.remove(db._reader, "before_cursor_execute", note)


def made(db: Database, name: str = "n8n") -> str:
    with db.write() as tx:
        return keys.create(tx, name, ["submit"])


def test_a_key_is_looked_up_once(db: Database, asked: list[str]) -> None:
    secret, ring = made(db), KnownKeys(db, "")
    assert ring.known(secret) is None
    found = ring.find(secret)
    assert found is not None
    assert ring.find(secret) == ring.known(secret) == found
    assert len(asked) == 1


def test_who_is_unknown_is_asked_for_each_time(db: Database, asked: list[str]) -> None:
    """Or a new key would not work at first."""
    ring = KnownKeys(db, "")
    assert ring.find("bk_unknown") is None is ring.find("bk_unknown")
    assert len(asked) == 2


def test_a_key_revoked_here_is_forgotten_at_once(db: Database) -> None:
    secret, ring = made(db), KnownKeys(db, "")
    assert ring.find(secret) is not None
    with db.write() as tx:
        keys.revoke(tx, "n8n")
    assert ring.known(secret) is None is ring.find(secret)


def test_other_limits_hold_from_the_next_request_on(db: Database) -> None:
    secret, ring = made(db), KnownKeys(db, "")
    ring.find(secret)
    with db.write() as tx:
        keys.set_limits(tx, "n8n", "5/min", None)
    found = ring.find(secret)
    assert found is not None
    assert found.rate == "5/min"


def test_what_another_process_revoked_is_found_out(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 100.0
    monkeypatch.setattr(known_keys.time, "monotonic", lambda: moment)
    secret, ring = made(db), KnownKeys(db, "")
    ring.find(secret)
    with db.write() as tx:  # not by board.access.keys: as if elsewhere
        tx.execute(update(api_keys).values(revoked_at=now()))
    moment += known_keys.KNOWN_SECONDS - 0.01
    assert ring.find(secret) is not None
    moment += 0.01
    assert ring.find(secret) is None


def test_a_key_that_is_revoked_while_it_is_looked_up_is_not_remembered(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, ring, find = made(db), KnownKeys(db, ""), keys.find

    def slow(*given: object) -> object:
        found = find(*given)  # type: ignore[arg-type]
        with db.write() as tx:
            keys.revoke(tx, "n8n")
        return found

    monkeypatch.setattr(keys, "find", slow)
    assert ring.find(secret) is not None, "it was good when it was asked for"
    assert ring.known(secret) is None


def test_many_keys_do_not_fill_the_memory(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_keys, "MOST", 2)
    ring = KnownKeys(db, "")
    for name in ("a", "b", "c"):
        assert ring.find(made(db, name)) is not None
    assert len(ring._known) <= 2
