"""Databases whose clock stands at a moment of a test's choice."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from board.db.engine import Database
from tests.heart import frozen_clock

SetClock = Callable[[datetime], None]


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    opened = Database(database_url)
    yield opened
    opened.close()


@pytest.fixture
def clock(db: Database) -> Iterator[SetClock]:
    """`clock(moment)` sets the board's clock, which stands still."""
    with frozen_clock(db) as at:
        yield lambda moment: at((moment - datetime(2030, 1, 1, tzinfo=UTC)).total_seconds())
