"""The tokens of models that the work of a type may use in a day of the board's zone: `limits.tokens_per_day`."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import ColumnElement, Connection, select

from board.queue import usage
from board.queue.models import limits
from board.queue.usage import Now

PREFIX = "tokens:"


def spend(tx: Connection, type_name: str, tokens: int, now: Now) -> None:
    """An attempt has used so many."""
    scope = PREFIX + type_name
    found = usage.lock(tx, [scope], wait=True)[scope]
    found.used, found.day = found.used_on(now) + tokens, now.day
    usage.write(tx, {scope: found})


def any_at_all() -> ColumnElement[bool]:
    """Whether any type has used tokens, on whatever day."""
    return select(limits.c.scope).where(limits.c.scope.startswith(PREFIX)).exists()


def used(connection: Connection, now: Now) -> Mapping[str, int]:
    """What was used today, by type; those that have used nothing are missing."""
    query = select(limits.c.scope, limits.c.used).where(limits.c.scope.startswith(PREFIX), limits.c.day == now.day)
    return {scope.removeprefix(PREFIX): number for scope, number in connection.execute(query)}
