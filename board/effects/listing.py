"""Reading the ledger of side effects: lists by state, what waits for a person, the tries of one operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import CompoundSelect, Connection, RowMapping, Select, and_, func, select, union_all

from board.db.clock import read_now
from board.db.pages import DEFAULT_LIMIT, Key, Page, after, page
from board.effects.models import ANNOUNCED, OUTSIDE, UNKNOWN, UNSETTLED, deliveries, operations
from board.effects.outside import LEFT_OPEN_AFTER

STATUSES = ("reserved", "sent", "confirmed", "rejected", "unknown")
MOST_TRIES = 200  # of one operation; a callback that is repeated for three days has about a hundred


@dataclass(frozen=True, slots=True)
class Filter:
    """Which operations. Empty means all. in_question: what waits for a person's word, whatever the rest says."""

    statuses: Sequence[str] = ()
    kinds: Sequence[str] = ()
    owner: str | None = None
    task_id: str | None = None
    key: str | None = None
    in_question: bool = False


def found(connection: Connection, wanted: Filter, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT) -> Page:
    """Operations, the latest first."""
    query = _where(select(operations), wanted, connection)
    keys = [Key(operations.c.id, "id", True)]
    return page(connection.execute(after(query, keys, cursor, limit)).mappings().all(), keys, limit)


def count_in_question(connection: Connection) -> int:
    """How many operations wait for a person's word: of unknown outcome, or announced long ago and never closed."""
    query = _where(select(func.count()).select_from(operations), Filter(in_question=True), connection)
    return int(connection.execute(query).scalar_one())


def tries(connection: Connection, operation: int) -> Sequence[RowMapping]:
    """What came back at each try, the latest first."""
    query = select(deliveries).where(deliveries.c.operation == operation).order_by(deliveries.c.id.desc())
    return connection.execute(query.limit(MOST_TRIES)).mappings().all()


def _where(query: Select[Any], wanted: Filter, connection: Connection) -> Select[Any]:
    if wanted.in_question:
        query = query.where(operations.c.id.in_(_in_question(read_now(connection))))
    if wanted.statuses:
        query = query.where(operations.c.status.in_(wanted.statuses))
        if "confirmed" not in wanted.statuses:  # the condition of ix_operations_unsettled, which is small
            query = query.where(UNSETTLED)
    if wanted.kinds:
        query = query.where(operations.c.kind.in_(wanted.kinds))
    if wanted.owner is not None:
        query = query.where(OUTSIDE, operations.c.owner == wanted.owner)
    if wanted.task_id is not None:
        query = query.where(operations.c.task_id == wanted.task_id)
    if wanted.key is not None:
        query = query.where(operations.c.key == wanted.key)
    return query


def _in_question(moment: datetime) -> CompoundSelect[Any]:
    """The ids, each part by a partial index of its own: an OR would make both databases walk the whole table.

    Harmless ones are no question: the board does them again by itself where that is wanted.
    """
    announced = func.coalesce(operations.c.sent_at, operations.c.created_at)
    forgotten = and_(announced < moment - LEFT_OPEN_AFTER, operations.c.harmless.is_(False))
    return union_all(
        select(operations.c.id).where(UNKNOWN),
        select(operations.c.id).where(ANNOUNCED, forgotten),
    )
