"""Insert a row unless one with the same unique value exists: the base of everything that is made only once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_once(tx: Connection, table: Table, unique: str, row: Mapping[str, Any]) -> RowMapping | None:
    """The new row, or None when a row with the same value in the column `unique` exists; safe under racing writers."""
    dialect = sqlite if tx.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(table).values(dict(row)).on_conflict_do_nothing(index_elements=[unique])
    return tx.execute(statement.returning(table)).mappings().one_or_none()
