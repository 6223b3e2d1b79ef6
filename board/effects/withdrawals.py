"""Calls that are still to be called off, because their task was cancelled while they were out."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, delete, literal, select, update
from sqlalchemy.dialects import postgresql, sqlite

from board.db.clock import now
from board.effects.models import operations, withdrawals
from board.tasks.models import tasks
from board.tasks.states import Status

AT_ONCE = 20  # calls that are called off side by side: a bulk of cancelled tasks must not storm the other side
# Seconds before the first look: the worker of a task that ran may just have told the other side itself.
FIRST_LOOK = 1.0


def enter(tx: Connection, left: Select[int]) -> None:
    """left: finds the ids of the operations."""
    rows = left.add_columns(literal(0), now(FIRST_LOOK))
    dialect = sqlite if tx.dialect.name == "sqlite" else postgresql
    made = dialect.insert(withdrawals).from_select(["operation", "tries", "next_try_at"], rows)
    tx.execute(made.on_conflict_do_nothing())


def any_due() -> ColumnElement[bool]:
    """Whether one is to be called off now. The table is nearly always empty."""
    return select(withdrawals.c.operation).where(withdrawals.c.next_try_at <= now()).exists()


def due(connection: Connection) -> Sequence[RowMapping]:
    """Rows of `withdrawals` whose time has come, each with its operation, the type and whether its task is still
    cancelled: one that was put back is worked on again, and its call is not touched."""
    query = (
        select(
            withdrawals.c.tries.label("withdrawal_tries"),
            operations,
            tasks.c.type,
            tasks.c.type_version,
            tasks.c.status.label("task_status"),
        )
        .join(operations, operations.c.id == withdrawals.c.operation)
        .outerjoin(tasks, tasks.c.id == operations.c.task)
        .where(withdrawals.c.next_try_at <= now())
        .order_by(withdrawals.c.next_try_at)
        .limit(AT_ONCE)
    )
    return connection.execute(query).mappings().all()


def is_wanted(row: RowMapping) -> bool:
    """row: of `due`."""
    return bool(row["task_status"] == Status.CANCELLED and row["status"] == "unknown")


def postpone(tx: Connection, operation: int, seconds: float) -> None:
    tx.execute(
        update(withdrawals)
        .where(withdrawals.c.operation == operation)
        .values(tries=withdrawals.c.tries + 1, next_try_at=now(seconds))
    )


def done(tx: Connection, operation: int) -> None:
    tx.execute(delete(withdrawals).where(withdrawals.c.operation == operation))
