"""The row of one claim: what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, update

from board.db.clock import now
from board.db.many import update_many
from board.tasks.claiming import Lease
from board.tasks.models import attempts

# What an attempt can say of its end; empty until then.
_SAID = (
    *("outcome", "error_class", "error_cause", "error", "rule"),
    *("output", "raw_text", "tokens", "cost", "reference"),
)


def end_attempt(tx: Connection, lease: Lease, said: Mapping[str, Any]) -> None:
    """said: columns of `attempts`."""
    this = (attempts.c.task == lease.task) & (attempts.c.number == lease.token)
    tx.execute(update(attempts).where(this).values(finished_at=now(), **said))


def end_attempts(tx: Connection, ended: Sequence[tuple[Lease, Mapping[str, Any]]], at: datetime) -> None:
    """The same for many that ended at the same time."""
    shared = dict.fromkeys(_SAID) | {"finished_at": at}
    rows = [{"task": lease.task, "number": lease.token, **shared, **said} for lease, said in ended]
    update_many(tx, attempts, ["task", "number"], rows)
