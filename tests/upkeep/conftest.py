from collections.abc import Callable, Iterator

import pytest

from board.db.engine import Database
from tests.heart import settable_clock


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.close()


@pytest.fixture
def at(db: Database) -> Iterator[Callable[[float], None]]:
    """`at(seconds)` sets the board's clock that far ahead of the real one."""
    with settable_clock(db) as shift:
        yield shift
