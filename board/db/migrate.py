"""The schema: up, down, and whether a database has it.

Alembic is loaded for a migration only: it is a tenth of what an idle process holds. To look whether the schema fits
needs the names of the files in migrations/versions, whose first part is the revision.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, create_engine, inspect, text

from board.db import clock
from board.db.engine import SQLITE_BUSY_SECONDS, normal_url

if TYPE_CHECKING:
    from alembic.config import Config

_SCRIPTS = Path(__file__).parent / "migrations"
# Any number, the same in all processes: PostgreSQL's lock that lets one process migrate while the others wait.
_LOCK = 7_314_008_115


class SchemaError(Exception):
    """The database's schema does not fit this program; the text says which command mends it."""


def upgrade(url: str, revision: str = "head") -> None:
    """Bring the schema up. Safe to call from several processes at once."""
    with _locked(url) as connection:
        if revision == "head" and revision_of(connection) == newest():
            return
        from alembic import command

        command.upgrade(_config(connection), revision)


def downgrade(url: str, revision: str) -> None:
    """Take the schema down to a revision ("base" for nothing). Data of dropped tables is lost."""
    from alembic import command

    with _locked(url) as connection:
        command.downgrade(_config(connection), revision)


def newest() -> str:
    """The schema that this program needs."""
    return max(known())


@cache
def known() -> frozenset[str]:
    """Every schema that this program can bring up to its own."""
    return frozenset(file.name.partition("_")[0] for file in (_SCRIPTS / "versions").glob("[0-9]*.py"))


def check(connection: Connection) -> None:
    """Raise SchemaError unless the schema is exactly the one this program was made for."""
    here = revision_of(connection)
    head = newest()
    if here is None:
        raise SchemaError(
            "The database is empty. Run `board migrate` first, or use `board up`, which does it by itself."
        )
    if here != head:
        raise SchemaError(
            f"The database has schema {here}, this program needs {head}. Run `board migrate` with the newest program."
        )


def revision_of(connection: Connection) -> str | None:
    """The name of the schema that the database has; None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return found


def _config(connection: Connection) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


@contextlib.contextmanager
def _locked(url_text: str) -> Iterator[Connection]:
    url = normal_url(url_text)
    if url.get_backend_name() == "sqlite":
        if url.database:
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(url, connect_args={"timeout": SQLITE_BUSY_SECONDS, "isolation_level": None})
        with engine.connect() as connection:
            raw = connection.connection.dbapi_connection
            assert raw is not None
            raw.create_function("board_now", 0, clock.sqlite_now)
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # held to the end: others wait in line
            yield connection
            connection.commit()
            raw.commit()
    else:
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            yield connection
    engine.dispose()
