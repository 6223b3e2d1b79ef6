"""Lists by cursor: each page starts after the last row of the one before, however many rows come and go meanwhile."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, TypeDecorator, and_, or_

MAX_LIMIT = 200
DEFAULT_LIMIT = 50


class BadCursor(ValueError):
    """The cursor does not belong to this list. The text says what to do."""

    def __init__(self) -> None:
        super().__init__("The cursor does not belong to this list; start again without one.")


@dataclass(frozen=True, slots=True)
class Key:
    """One column of the order. The last key of a list must be unique."""

    column: ColumnElement[Any]
    name: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    rows: list[RowMapping]
    next_cursor: str | None


def after(statement: Select[Any], keys: Sequence[Key], cursor: str | None, limit: int) -> Select[Any]:
    """The statement in order, from after the cursor on; one row more than `limit`, to see whether there is a next."""
    if cursor:
        values = _decode(cursor, keys)
        branches = []
        for index, key in enumerate(keys):
            same = [keys[i].column == values[i] for i in range(index)]
            beyond = key.column < values[index] if key.descending else key.column > values[index]
            branches.append(and_(*same, beyond))
        statement = statement.where(or_(*branches))
    order = [key.column.desc() if key.descending else key.column.asc() for key in keys]
    return statement.order_by(*order).limit(limit + 1)


def page(rows: Sequence[RowMapping], keys: Sequence[Key], limit: int) -> Page:
    """The rows that `after` selected, cut to the limit, with the cursor of the next page."""
    if len(rows) <= limit:
        return Page(list(rows), None)
    last = rows[limit - 1]
    values = [_plain(last[key.name]) for key in keys]
    text = json.dumps([_signature(keys), *values], separators=(",", ":"))
    return Page(list(rows[:limit]), base64.urlsafe_b64encode(text.encode()).decode().rstrip("="))


def _decode(cursor: str, keys: Sequence[Key]) -> list[Any]:
    try:
        signature, *values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, TypeError, RecursionError) as error:
        raise BadCursor from error
    if signature != _signature(keys) or len(values) != len(keys):
        raise BadCursor
    return [_value(value, _kind(key.column)) for value, key in zip(values, keys, strict=True)]


def _kind(column: ColumnElement[Any]) -> type:
    kind = column.type
    return (kind.impl_instance if isinstance(kind, TypeDecorator) else kind).python_type


def _value(value: Any, kind: type) -> Any:
    """A value of a cursor as its column has it. Cursors come from outside: anything may stand in them.

    kind: the column's; `object` is what SQLModel's text columns say of themselves.
    """
    try:
        if kind is datetime and isinstance(value, str):
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is not None:
                return moment.astimezone(UTC)
        if kind is int and type(value) is int and abs(value) < 2**63:
            return value
        if kind in (str, object) and isinstance(value, str) and "\0" not in value.encode().decode():
            return value
    except (ValueError, OverflowError) as error:
        raise BadCursor from error
    raise BadCursor


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _signature(keys: Sequence[Key]) -> str:
    return ",".join(("-" if key.descending else "") + key.name for key in keys)
