"""The row of one claim: what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, update

from board.db.clock import now
from board.tasks.claiming import Lease
from board.tasks.models import attempts


def end_attempt(tx: Connection, lease: Lease, said: Mapping[str, Any]) -> None:
    """said: columns of `attempts`."""
    this = (attempts.c.task == lease.task) & (attempts.c.number == lease.token)
    tx.execute(update(attempts).where(this).values(finished_at=now(), **said))
