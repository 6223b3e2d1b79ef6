"""Sending a callback again by a person's or a program's wish: the same id, the same bytes, three more days."""

from __future__ import annotations

import re

from sqlalchemy import Connection, RowMapping, update

from board.access.rights import Act, Actor
from board.db.clock import now
from board.effects.models import operations
from board.effects.operations import CALLBACK, SUBSCRIPTION, by_id
from board.effects.scribe import GIVE_UP_AFTER
from board.effects.steps import NoSuchOperation
from board.tasks.history import record
from board.tasks.visible import visible

OUTBOX = (CALLBACK, SUBSCRIPTION)
_ID = re.compile("[0-9]{1,18}")  # fits 64 bits


class NotResendable(Exception):
    """This operation cannot be sent again like that. The text says what to do instead."""


def may_resend(row: RowMapping) -> bool:
    return row["kind"] in OUTBOX and row["after"] is None


def resend(tx: Connection, actor: Actor, operation: str, channel: str, reason: str | None = None) -> RowMapping:
    """Put a callback into the outbox anew, whether it was confirmed, given up or waits; the row as it is then.

    One that waits goes at once. Raises NoSuchOperation, NoSuchTask, Forbidden, NotResendable.
    """
    row = by_id(tx, int(operation)) if _ID.fullmatch(operation) else None
    if row is None or (row["task"] is None and row["kind"] != SUBSCRIPTION):
        raise NoSuchOperation(operation)
    if row["kind"] == SUBSCRIPTION:  # no part of what was done for the task
        actor.require(Act.OPERATE)
    else:
        visible(tx, actor, row["task_id"], Act.OPERATE)
        if row["kind"] != CALLBACK:
            raise NotResendable(
                "Only callbacks are sent again like that. Requeue the task to repeat a rejected action; where its "
                "outcome is unknown, say first what happened."
            )
        # This locks the task, and whoever writes out word of a task locks that first and then its earlier calls.
        record(tx, row["task"], "callback_resent", actor.by(channel), note=reason, data={"operation": str(row["id"])})
    row = by_id(tx, row["id"], lock=True)
    assert row is not None
    if row["after"] is not None:
        raise NotResendable("It waits for an earlier event of its task, which is sent first; send that one again.")
    tx.execute(
        update(operations)
        .where(operations.c.id == row["id"])
        .values(
            status="reserved",
            next_try_at=now(),
            give_up_at=now(GIVE_UP_AFTER),
            closed_at=None,
            last_error=None,
        )
    )
    after = by_id(tx, row["id"])
    assert after is not None
    return after
