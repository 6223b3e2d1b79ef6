"""One clock for all: settable, in UTC, and the same through both databases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import StatementError

from board.db.clock import now, read_now
from board.db.engine import Database
from board.tasks.ledger import Ledger
from board.tasks.models import tasks
from tests.heart import create, row_of

SECOND = timedelta(seconds=1)


def test_the_time_comes_in_utc_with_its_zone(db: Database) -> None:
    with db.read() as connection:
        moment = read_now(connection)
    assert moment.tzinfo is UTC
    assert abs(moment - datetime.now(UTC)) < 5 * SECOND


@pytest.mark.parametrize("seconds", [3600.0, 90 * 86400.0, -7200.5])
def test_tests_can_set_the_clock(db: Database, at: Callable[[float], None], seconds: float) -> None:
    at(seconds)
    with db.read() as connection:
        there = read_now(connection)
        plus = connection.execute(select(now(1.5))).scalar_one()
    assert abs(there - datetime.now(UTC) - timedelta(seconds=seconds)) < 5 * SECOND
    assert timedelta(seconds=1.5) <= plus - there < timedelta(seconds=5)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=8))),
        datetime(2026, 3, 29, 2, 30, 0, 123456, tzinfo=UTC),
        datetime(1, 1, 2, tzinfo=UTC),
        datetime(9999, 12, 30, 23, 59, 59, 999999, tzinfo=timezone(timedelta(hours=-11, minutes=-30))),
    ],
    ids=str,
)
def test_a_time_comes_back_as_the_same_moment_in_utc(db: Database, moment: datetime) -> None:
    task = create(db, Ledger(), "T-1")
    with db.write() as tx:
        tx.execute(update(tasks).values(due_at=moment))
    back = row_of(db, task)["due_at"]
    assert back == moment
    assert back.tzinfo is UTC


def test_times_are_compared_as_moments_not_as_text(db: Database) -> None:
    create(db, Ledger(), "T-1", due_at=datetime(2026, 1, 1, 0, 0, tzinfo=timezone(timedelta(hours=8))))
    before = select(tasks.c.id).where(tasks.c.due_at < datetime(2025, 12, 31, 16, 0, 0, 1, tzinfo=UTC))
    after = select(tasks.c.id).where(tasks.c.due_at < datetime(2025, 12, 31, 16, 0, tzinfo=UTC))
    with db.read() as connection:
        assert connection.execute(before).first() is not None
        assert connection.execute(after).first() is None


def test_a_time_without_a_zone_never_reaches_a_table(db: Database) -> None:
    naive = datetime(2026, 1, 1)
    with pytest.raises(StatementError, match="without a zone"):
        create(db, Ledger(), "T-1", due_at=naive)
