"""A database of this test, and its clock."""

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import text

from board.db import clock
from board.db.engine import Database

PASSWORD = "correct horse battery"


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.close()


@pytest.fixture
def at(db: Database) -> Iterator[Callable[[float], None]]:
    """`at(seconds)` sets the board's clock that far from the real one."""

    def shift(seconds: float) -> None:
        clock.set_offset(seconds)
        if not db.is_sqlite:
            with db.write() as tx:
                tx.execute(
                    text(
                        "CREATE OR REPLACE FUNCTION board_now() RETURNS timestamptz LANGUAGE sql STABLE AS "
                        f"'SELECT clock_timestamp() + make_interval(secs => {float(seconds)})'"
                    )
                )

    yield shift
    clock.set_offset(0)
