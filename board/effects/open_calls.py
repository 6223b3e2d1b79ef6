"""Calls that are out and not closed: what an earlier attempt left, and what a task leaves that ends meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, or_, select, update

from board.db.clock import now
from board.effects import withdrawals
from board.effects.models import operations
from board.effects.operations import CALLBACK, OPEN, SUBSCRIPTION
from board.ports import FormAnswer, SentOperation
from board.tasks.followers import Moved
from board.tasks.states import Status

# A call that the board itself makes and waits for: neither the outbox, which is sent until it is confirmed or given up,
# nor what outside programs announce.
_OWN: tuple[ColumnElement[bool], ...] = (
    operations.c.kind.not_in([CALLBACK, SUBSCRIPTION]),
    operations.c.give_up_at.is_(None),
    operations.c.owner.is_(None),
)
# A call that an outside worker announced under its claim of a task: what is reserved may have been sent.
_ANNOUNCED = operations.c.owner.is_not(None) & (operations.c.lease_token > 0) & operations.c.status.in_(OPEN)


def left_open(connection: Connection, task: RowMapping) -> RowMapping | None:
    """What an earlier attempt of this task sent in this phase, and nobody knows how it went."""
    return left_open_by(connection, [task]).get(task["id"])


def left_open_by(connection: Connection, of: Sequence[RowMapping]) -> dict[int, RowMapping]:
    """The same for many tasks, by their internal id."""
    if not of:
        return {}
    phases = {task["id"]: task["phase"] for task in of}
    query = (
        select(operations)
        .where(operations.c.task.in_(phases), *_OWN, operations.c.status.in_(["sent", "unknown"]))
        .order_by(operations.c.id)  # the last one of a task counts
    )
    found = connection.execute(query).mappings()
    return {row["task"]: row for row in found if row["phase"] == phases[row["task"]]}


def asked(tx: Connection, operation: int) -> None:
    """The target was asked once more what became of it."""
    tx.execute(update(operations).where(operations.c.id == operation).values(asks=operations.c.asks + 1))


def leave(tx: Connection, moved: Moved) -> None:
    """A follower of the ledger: a task that ends while a call is out leaves its outcome unknown, for people to see.

    Of a cancelled task the call itself is to be called off: board.effects.withdrawals.
    """
    if moved.status in (Status.CANCELLED, Status.FAILED):
        error = f"The task was {moved.status} while the call was out."
        tx.execute(
            update(operations)
            .where(operations.c.task == moved.task["id"])
            .where(or_(and_(operations.c.status == "sent", *_OWN), _ANNOUNCED))
            .values(status="unknown", closed_at=now(), last_error=error)
        )
    if moved.status == Status.CANCELLED:
        left = select(operations.c.id).where(
            operations.c.task == moved.task["id"], operations.c.status == "unknown", *_OWN
        )
        withdrawals.enter(tx, left)


def left_open_among(connection: Connection, rows: Sequence[RowMapping]) -> set[int]:
    """Of these tasks, by internal id, those of which `left_open` would find something. rows: id, phase, lease_token."""
    tried = {row["id"]: row["phase"] for row in rows if row["lease_token"]}
    if not tried:
        return set()
    query = select(operations.c.task, operations.c.phase).where(
        operations.c.task.in_(tried), operations.c.status.in_(["sent", "unknown"]), *_OWN
    )
    return {task for task, phase in connection.execute(query) if tried[task] == phase}


def as_sent(row: RowMapping, answer: FormAnswer | None = None) -> SentOperation:
    """An open operation as a handler's `reconcile` sees it. answer: what a person said to the form it waited with."""
    return SentOperation(
        key=row["key"],
        kind=row["kind"],
        target=row["target"],
        user=attempt_user(row["task"], row["lease_token"]),
        reference=row["external_reference"],
        sent_at=row["sent_at"],
        answer=answer,
        request=row["body"].encode() if row["body"] is not None else None,
    )


def attempt_user(task: int, lease_token: int) -> str:
    """The name under which one attempt is known outside; Dify's run log is searched by it."""
    return f"board:{task}:{lease_token}"
