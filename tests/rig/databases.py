"""Fresh databases, one per test, on both engines.

`database_url` runs a test twice, on SQLite and on PostgreSQL: the conformance suite. Each database is a copy of a
template that was migrated once per run; those on PostgreSQL are emptied and used again.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from board.db.engine import Database
from tests.heart import settable_clock
from tests.rig.postgres import Postgres
from tests.rig.recycled import Recycled

ENGINES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def _sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from board.db.migrate import upgrade

    path = tmp_path_factory.mktemp("template") / "board.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def _postgres_template(postgres: Postgres) -> Iterator[str]:
    from board.db.migrate import upgrade

    url = postgres.create()
    upgrade(url)
    yield url
    postgres.drop(url)


@pytest.fixture
def sqlite_url(_sqlite_template: Path, tmp_path: Path) -> str:
    """A migrated SQLite database of this test."""
    path = tmp_path / "board.db"
    with closing(sqlite3.connect(_sqlite_template)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)  # takes the write-ahead log along, and the journal mode
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def _recycled(postgres: Postgres, _postgres_template: str) -> Iterator[Recycled]:
    recycled = Recycled(postgres, _postgres_template)
    yield recycled
    recycled.close()


@pytest.fixture
def postgres_url(_recycled: Recycled) -> Iterator[str]:
    """A migrated PostgreSQL database of this test."""
    url = _recycled.take()
    yield url
    _recycled.give_back(url)


@pytest.fixture(params=ENGINES)
def database_url(request: pytest.FixtureRequest) -> str:
    """A migrated database of this test; the test runs on each engine."""
    fixture = {"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param]
    url: str = request.getfixturevalue(fixture)
    return url


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    """The database of this test, opened as the board does; the test runs on each engine."""
    database = Database(database_url)
    yield database
    database.close()


@pytest.fixture
def at(db: Database) -> Iterator[Callable[[float], None]]:
    """`at(seconds)` sets the board's clock that far ahead of the real one, or behind it."""
    with settable_clock(db) as shift:
        yield shift


@pytest.fixture(params=ENGINES)
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without any table; the test runs on each engine."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    postgres: Postgres = request.getfixturevalue("postgres")
    url = postgres.create()
    yield url
    postgres.drop(url)
