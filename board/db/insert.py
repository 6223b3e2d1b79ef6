"""Insert a row unless one with the same unique value exists: the base of everything that is made only once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_once(tx: Connection, table: Table, unique: str | Sequence[str], row: Mapping[str, Any]) -> RowMapping | None:
    """The new row, or None when a row with the same value in `unique` exists; safe under racing writers.

    unique: a column, or several that are unique together.
    """
    dialect = sqlite if tx.dialect.name == "sqlite" else postgresql
    columns = [unique] if isinstance(unique, str) else list(unique)
    statement = dialect.insert(table).values(dict(row)).on_conflict_do_nothing(index_elements=columns)
    return tx.execute(statement.returning(table)).mappings().one_or_none()
