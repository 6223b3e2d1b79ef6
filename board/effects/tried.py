"""What the ledger knows of an operation that is tried again and again."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from board.db.clock import read_now
from board.effects.models import deliveries, operations


@dataclass(frozen=True, slots=True)
class SoFar:
    """tries: with the present one. seconds: since it was first announced.

    proven: earlier tries whose answer shows that they changed nothing; the rest was lost, or its sender died.
    """

    tries: int
    seconds: float
    proven: int

    @property
    def may_have_arrived(self) -> bool:
        """Whether an earlier try may have taken effect."""
        return self.tries - 1 > self.proven


def so_far(connection: Connection, operation: int) -> SoFar:
    proven = (
        select(func.count())
        .select_from(deliveries)
        .where(deliveries.c.operation == operation, deliveries.c.outcome.in_(["transient", "rejected"]))
        .scalar_subquery()
    )
    query = select(operations.c.tries, operations.c.created_at, proven.label("proven"))
    row = connection.execute(query.where(operations.c.id == operation)).one()
    return SoFar(row.tries, (read_now(connection) - row.created_at).total_seconds(), row.proven)
