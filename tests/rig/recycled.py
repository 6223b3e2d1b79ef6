"""Databases on PostgreSQL that are used again: to make one takes fifty times as long as to empty one.

A database is emptied when the next test takes it, because only then everything of the former test is certainly over.
One whose shape has changed (a table more, another schema, statistics) is thrown away.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from tests.rig.postgres import Postgres

# Everything in which a used database may differ from a fresh one, but for rows.
_SHAPE = """
SELECT string_agg(what, E'\\n' ORDER BY what) FROM (
    SELECT format('%s %s %s', relkind, relname, relnatts) FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT version_num FROM alembic_version
    UNION ALL SELECT 'statistics of ' || relname FROM pg_statistic JOIN pg_class ON pg_class.oid = starelid
        WHERE relnamespace = 'public'::regnamespace
) AS shape (what)
"""
_FUNCTIONS = "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
_OTHERS_AWAY = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_IDS_ANEW = "SELECT setval(seqrelid::regclass, seqstart, false) FROM pg_sequence"


class Recycled:
    """Migrated databases, copies of the template; each is one test's alone from `take` to `give_back`."""

    def __init__(self, postgres: Postgres, template: str) -> None:
        self._postgres, self._template = postgres, template
        self._free: list[str] = []
        with _connected(template) as connection:
            self._shape = _one(connection, _SHAPE)
            self._functions = [row[0] for row in connection.execute(_FUNCTIONS)]
            self._tables = [row[0] for row in connection.execute(_TABLES)]
            assert not _with_rows(connection, self._tables), "migrations fill no table; if they did, it is emptied here"

    def take(self) -> str:
        """The URL of an empty database with the newest schema."""
        while self._free:
            url = self._free.pop()
            if self._empty(url):
                return url
            self._postgres.drop(url)
        return self._postgres.create(template=self._template)

    def give_back(self, url: str) -> None:
        self._free.append(url)

    def close(self) -> None:
        for url in self._free:
            self._postgres.drop(url)

    def _empty(self, url: str) -> bool:
        """Whether the database is like a fresh one now."""
        try:
            with _connected(url) as connection:
                connection.execute(_OTHERS_AWAY)
                for definition in self._functions:  # a test's clock is one of them
                    connection.execute(definition)
                if _one(connection, _SHAPE) != self._shape:
                    return False
                if used := _with_rows(connection, self._tables):
                    names = sql.SQL(", ").join(map(sql.Identifier, used))
                    connection.execute(sql.SQL("TRUNCATE {} CASCADE").format(names))
                connection.execute(_IDS_ANEW)
        except psycopg.Error:  # dropped by its test, for example
            return False
        return True


def _connected(url: str) -> psycopg.Connection[Any]:
    return psycopg.connect(url, autocommit=True)


def _one(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def _with_rows(connection: psycopg.Connection[Any], tables: list[str]) -> list[str]:
    look = sql.SQL("EXISTS (SELECT 1 FROM {})")
    row = connection.execute(
        sql.SQL("SELECT {}").format(sql.SQL(", ").join(look.format(sql.Identifier(name)) for name in tables))
    ).fetchone()
    assert row is not None
    return [name for name, has_rows in zip(tables, row, strict=True) if has_rows]
