"""What stays of the operations of tasks that are archived: the ledger itself. Their keys are never free again."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, delete, select, update

from board.effects.models import deliveries, operations
from board.effects.operations import SUBSCRIPTION

# A call that may still be made, or of which nobody knows how it went: its task is not archived. A call that may be done
# twice, such as a run in Dify whose task was cancelled, is no question to anybody.
OPEN = operations.c.status.in_(["reserved", "sent"]) | (
    (operations.c.status == "unknown") & operations.c.harmless.is_(False)
)


def operations_of(tx: Connection, tasks: Collection[int]) -> None:
    """Remove the single tries and the bodies, which stood for sending again; the rows, keys and references stay."""
    # Word to subscriptions is no business action: nobody will ask for its key again.
    tx.execute(delete(operations).where(operations.c.task.in_(tasks), ~OPEN, operations.c.kind == SUBSCRIPTION))
    closed = operations.c.task.in_(tasks) & ~OPEN
    tx.execute(delete(deliveries).where(deliveries.c.operation.in_(select(operations.c.id).where(closed))))
    tx.execute(update(operations).where(closed).values(body=None, url=None))
