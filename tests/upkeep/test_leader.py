"""One leader at a time; a dead one is followed, a clean one hands over at once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from board.db.engine import Database
from board.upkeep import leader
from board.upkeep.leader import LEASE_SECONDS, LOOK_SECONDS, Leader, current

At = Callable[[float], None]


def who(db: Database) -> str | None:
    with db.read() as connection:
        return current(connection)


def test_the_first_leads_and_the_others_do_not(db: Database) -> None:
    first, second = Leader(db, "first"), Leader(db, "second")
    assert who(db) is None
    assert first.seek()
    assert not second.seek()
    assert (first.leads, second.leads) == (True, False)
    assert who(db) == "first"


def test_of_many_who_ask_at_once_one_wins(db: Database) -> None:
    many = [Leader(db, f"w{number}") for number in range(8)]
    with ThreadPoolExecutor(len(many)) as pool:
        won = list(pool.map(lambda one: one.seek(), many))
    assert won.count(True) == 1
    assert who(db) == f"w{won.index(True)}"


def test_renewing_keeps_it(db: Database, at: At) -> None:
    first, second = Leader(db, "first"), Leader(db, "second")
    first.seek()
    for step in range(1, 6):
        at(step * LEASE_SECONDS * 0.9)
        assert first.seek()
        assert not second.seek()


def test_a_dead_leader_is_followed_within_15_seconds(db: Database, at: At) -> None:
    first, second = Leader(db, "first"), Leader(db, "second")
    first.seek()
    at(LEASE_SECONDS - 2)
    assert not second.seek()
    at(LEASE_SECONDS + 0.1)
    assert second.seek()
    assert who(db) == "second"
    assert not first.seek(), "who comes back finds that another one leads"
    assert not first.leads
    assert LEASE_SECONDS + LOOK_SECONDS < 15


def test_a_clean_stop_hands_over_at_once(db: Database) -> None:
    first, second = Leader(db, "first"), Leader(db, "second")
    first.seek()
    with db.write() as tx:
        first.release(tx)
    assert not first.leads
    assert second.seek()


def test_who_does_not_lead_releases_nothing(db: Database) -> None:
    first, second = Leader(db, "first"), Leader(db, "second")
    first.seek()
    with db.write() as tx:
        second.release(tx)
    assert who(db) == "first"


def test_a_leader_that_cannot_renew_stops_believing_before_the_next_one_takes_over(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own clock runs on, whatever becomes of the database."""
    moment = 1000.0
    monkeypatch.setattr(leader.time, "monotonic", lambda: moment)
    first = Leader(db, "first")
    first.seek()
    moment += LEASE_SECONDS - 0.01
    assert first.leads
    moment += 0.02
    assert not first.leads
