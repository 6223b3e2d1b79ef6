"""What the work of each type spends in a day of the board's zone: calls to other systems, and tokens of models.

For people to see, of every type, and kept; what holds work back is counted in board.queue.budget, for types that have a
budget only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from board.db.clock import read_now
from board.queue.models import spending
from board.queue.usage import Now


class Spent(NamedTuple):
    """calls: how often something was sent. tokens: as far as the other side has told them."""

    type: str
    calls: int = 0
    tokens: int = 0


def add(tx: Connection, spent: Iterable[Spent], zone: str) -> None:
    """Attempts have spent this. Last in its transaction: writers of one type wait here for each other."""
    together: dict[str, Spent] = {}
    for it in spent:
        so_far = together.get(it.type, Spent(it.type))
        together[it.type] = Spent(it.type, so_far.calls + it.calls, so_far.tokens + it.tokens)
    if not together:
        return
    day = Now(read_now(tx), ZoneInfo(zone)).day
    dialect = sqlite if tx.dialect.name == "sqlite" else postgresql
    # In one order for all, so that nobody waits in a circle.
    made = dialect.insert(spending).values([{"day": day, **it._asdict()} for _, it in sorted(together.items())])
    sums = {name: spending.c[name] + made.excluded[name] for name in ("calls", "tokens")}
    tx.execute(made.on_conflict_do_update(index_elements=["day", "type"], set_=sums))


def today(connection: Connection, now: Now) -> dict[str, Spent]:
    """By type; those that have spent nothing are missing."""
    query = select(spending.c.type, spending.c.calls, spending.c.tokens).where(spending.c.day == now.day)
    return {row.type: Spent(row.type, row.calls, row.tokens) for row in connection.execute(query)}
