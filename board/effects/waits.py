"""Tasks that wait for another one's call under the same key, and are woken once it is closed.

Without this they would look again by themselves, after half a minute and ever more rarely.
"""

from __future__ import annotations

from functools import lru_cache

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, delete, exists, insert, or_, select, tuple_

from board.effects.models import operation_waits, operations
from board.tasks.ledger import Lease
from board.tasks.models import tasks
from board.tasks.states import TERMINAL, Status


def enter(tx: Connection, lease: Lease, operation: int) -> None:
    """This attempt has found the call open and ends; its task waits for it."""
    leave(tx, lease.task)
    tx.execute(insert(operation_waits).values(task=lease.task, attempt=lease.token, operation=operation))


def leave(tx: Connection, task: int) -> None:
    tx.execute(delete(operation_waits).where(operation_waits.c.task == task))


def any_at_all() -> ColumnElement[bool]:
    """Whether any task waits for a call, closed or not."""
    return select(operation_waits.c.task).exists()


@lru_cache(maxsize=1)
def over() -> Select[RowMapping]:
    """The tasks whose waiting is over: the call is confirmed, or was rejected and will not be tried again.

    The same rule as in board.effects.reuse. It begins at the table of those who wait, which is nearly empty.
    """
    owner = tasks.alias()
    pursued = exists().where(owner.c.id == operations.c.task, owner.c.status.not_in(TERMINAL))
    dropped = (operations.c.resolution == "drop") & operations.c.owner.is_not(None)
    closed = or_(
        operations.c.status == "confirmed",
        (operations.c.status == "rejected") & ~pursued & dropped.is_not(True),
    )
    waiting = (
        select(operation_waits.c.task, operation_waits.c.attempt)
        .join(operations, operations.c.id == operation_waits.c.operation)
        .where(closed)
    )
    this = tuple_(tasks.c.id, tasks.c.lease_token)
    return select(tasks).where(this.in_(waiting), tasks.c.status == Status.RETRYING)
