"""What a task has done outside, for people and programs: its operations, each with the log of its tries."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from sqlalchemy import Connection, select

from board.db.clock import read_now
from board.effects import operations as ledger
from board.effects.models import deliveries
from board.effects.operations import SUBSCRIPTION
from board.effects.resend import may_resend
from board.effects.view import operation_document, try_document

MOST_TRIES = 20  # of one operation, the latest; a callback that is tried for three days has about eighty


def of_task(connection: Connection, task: int) -> list[dict[str, Any]]:
    """Every operation of a task, oldest first, with its last tries, the latest first."""
    rows = [row for row in ledger.of_task(connection, task) if row["kind"] != SUBSCRIPTION]  # no part of its own work
    moment = read_now(connection)
    query = (
        select(deliveries)
        .where(deliveries.c.operation.in_([row["id"] for row in rows]))
        .order_by(deliveries.c.id.desc())
    )
    tries: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in connection.execute(query).mappings() if rows else ():
        if len(tries[row["operation"]]) < MOST_TRIES:
            tries[row["operation"]].append(try_document(row))
    return [
        operation_document(row, moment) | {"may_resend": may_resend(row), "deliveries": tries[row["id"]]}
        for row in rows
    ]
