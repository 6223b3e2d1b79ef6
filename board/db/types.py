"""Column types that mean the same on both databases: moments in UTC, and JSON that keeps every digit."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect, String, Text
from sqlalchemy.types import TypeDecorator, TypeEngine


def sqlite_text(moment: datetime) -> str:
    """Fixed width, so that text order is time order."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


class UtcTime(TypeDecorator[datetime]):
    """A moment. Goes in with any zone, comes out in UTC with its zone (SQLite alone would lose it)."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(String(26))
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone must not reach the database")
        return sqlite_text(value) if dialect.name == "sqlite" else value.astimezone(UTC)

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        # A task's row holds ten moments, so this is not left to TypeDecorator. psycopg gives UTC by itself, because our
        # connections are set to it.
        return _read_sqlite if dialect.name == "sqlite" else None


def _read_sqlite(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value + "+00:00")


class JsonText(TypeDecorator[Any]):
    """JSON kept as text: the same bytes on both databases, long integers digit for digit, SQL NULL for None."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else dump_json(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        return _read_json


def _read_json(value: str | None) -> Any:
    if value is None:
        return None
    return [] if value == "[]" else _decode(value)  # the tags of most tasks


_decode = json.JSONDecoder().decode

# Made once: json.dumps would make one for each call that asks for anything but the usual.
_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_SORTED = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)


def dump_json(value: Any, *, sort_keys: bool = False) -> str:
    """Compact JSON in stored form. ValueError on NaN and Infinity, which JSON does not have.

    sort_keys: the same text for equal content, whatever the order of keys.
    """
    return (_SORTED if sort_keys else _COMPACT).encode(value)
