"""On 50,000 rows what is written for many tasks at once finds each by its key, on either database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from sqlalchemy import event, select, text

from board.db.engine import Database
from board.effects import operations as ledger_of_calls
from board.effects.models import operations
from board.tasks.ledger import Lease, Ledger
from board.tasks.models import tasks
from board.tasks.settlements import Settlement
from board.tasks.states import Move
from board.tasks.view import data_of_many
from tests.heart import CALLER, WORKER, claim_lane, new_task
from tests.tasks.test_plans import full

__all__ = ["full"]

MANY = 100
# How a row is found: by a condition on its id inside an index, or by a unique index.
BY_KEY = re.compile(r"_pkey|_key\b|INTEGER PRIMARY KEY|sqlite_autoindex|Index Cond: .*\bid = ")
WHOLE = re.compile(r"(Seq Scan on|SCAN) (tasks|task_data|task_events|attempts|operations)\b")


@contextmanager
def written(db: Database) -> Iterator[list[str]]:
    """The plans of all statements on tables that are sent inside the block."""
    sent: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        if re.search(r"\b(tasks|task_data|attempts|operations)\b", statement):
            sent.append((statement, parameters))

    event.listen(db._writer, "before_cursor_execute", note)
    found: list[str] = []
    yield found
    event.remove(db._writer, "before_cursor_execute", note)
    with db.write() as tx:
        for statement, parameters in sent:
            prefix = "EXPLAIN QUERY PLAN " if db.is_sqlite else "EXPLAIN "
            rows = tx.exec_driver_sql(prefix + statement, parameters).all()
            found.append("\n".join(str(row[-1]) for row in rows))
        tx.rollback()


def check(found: list[str]) -> None:
    assert found
    for plan in found:
        assert not WHOLE.search(plan), plan
    assert any(BY_KEY.search(plan) for plan in found), found


@pytest.fixture
def claimed(full: Database) -> list[Lease]:
    with full.write() as tx:
        # The 50,000 were put in without their data; here it is needed.
        tx.execute(
            text(
                "INSERT INTO task_data (task, payload, payload_hash) "
                "SELECT id, '{}', '' FROM tasks WHERE status IN ('pending', 'running')"
            )
        )
        rows = claim_lane(tx, Ledger(), lane=0, limit=MANY)
        assert len(rows) == MANY
        tx.execute(text("ANALYZE"))
    return [Lease(row["id"], row["lease_token"]) for row in rows]


def test_many_new_tasks(full: Database) -> None:
    with written(full) as found, full.write() as tx:
        new = [
            new_task(f"N-{number}", data=new_task("")["data"] | {"payload": {"n": number}}) for number in range(MANY)
        ]
        assert len(Ledger().create(tx, new, CALLER)) == MANY
    check(found)


def test_a_claim_of_many(full: Database) -> None:
    with written(full) as found, full.write() as tx:
        assert len(claim_lane(tx, Ledger(), lane=0, limit=MANY)) == MANY
    check(found)


@pytest.mark.parametrize("move", [Move.SUCCEED, Move.RETRY, Move.HAND_BACK])
@pytest.mark.parametrize("once", [True, False], ids=["the result is the output", "another result"])
def test_many_endings(full: Database, claimed: list[Lease], move: Move, once: bool) -> None:
    outputs = {lease: {"n": lease.task} for lease in claimed}
    ends = [
        Settlement(
            lease,
            move,
            changes={"last_error": f"error {lease.task}"},
            data={"result": outputs[lease] if once else {"m": lease.task}, "judgement": None},
            attempt={"outcome": "succeeded", "output": outputs[lease]},
            wait=1.0 if move is Move.RETRY else None,
            note=f"note {lease.task}",
        )
        for lease in claimed
    ]
    with written(full) as found, full.write() as tx:
        assert len(Ledger().settle_many(tx, ends, WORKER)) == MANY
    check(found)


def test_a_heartbeat_of_many(full: Database, claimed: list[Lease]) -> None:
    with written(full) as found, full.write() as tx:
        assert len(Ledger().renew(tx, "w1", claimed, 60)) == MANY
    check(found)


def test_what_many_attempts_need(full: Database, claimed: list[Lease]) -> None:
    with written(full) as found, full.write() as tx:
        assert len(data_of_many(tx, [lease.task for lease in claimed])) == MANY
    check(found)


def test_many_closed_calls(full: Database) -> None:
    with full.read() as connection:
        ids = connection.execute(select(operations.c.id).where(operations.c.status == "reserved")).scalars().all()
    with written(full) as found, full.write() as tx:
        closed = [ledger_of_calls.Closed(number, "confirmed", f"run-{number}", None) for number in ids[:MANY]]
        ledger_of_calls.close_many(tx, closed)
        confirmed = select(operations.c.id).where(operations.c.external_reference.is_not(None))
        assert len(tx.execute(confirmed).all()) == MANY
    check(found[:1])


def test_the_first_rows_of_an_empty_board(db: Database) -> None:
    """Nothing is known of the tables yet: the plans must not depend on it."""
    ledger = Ledger()
    with written(db) as found, db.write() as tx:
        ledger.create(tx, [new_task(f"N-{number}") for number in range(MANY)], CALLER)
        rows = claim_lane(tx, ledger, lane=2, limit=MANY)
        ends = [Settlement(Lease(row["id"], row["lease_token"]), Move.SUCCEED, data={"result": 1}) for row in rows]
        assert len(ledger.settle_many(tx, ends, WORKER)) == MANY
    with db.read() as connection:
        assert set(connection.execute(select(tasks.c.status)).scalars()) == {"done"}
    if db.is_sqlite:  # PostgreSQL rightly reads a table of a hundred rows as a whole
        check(found)


def test_claims_and_ends_on_a_young_database_without_statistics(sqlite_url: str) -> None:
    """SQLite makes none by itself, and would take any index on the status for a good one."""
    ledger = Ledger()
    with closing(Database(sqlite_url)) as db:
        with db.write() as tx:
            ledger.create(tx, [new_task(f"N-{number}") for number in range(MANY)], CALLER)
        with written(db) as found, db.write() as tx:
            rows = claim_lane(tx, ledger, lane=2, limit=MANY)
            ends = [Settlement(Lease(row["id"], row["lease_token"]), Move.SUCCEED) for row in rows]
            assert len(ledger.settle_many(tx, ends, WORKER)) == MANY
            tx.rollback()
    changes = [plan for plan in found if "each_row" in plan]
    assert len(changes) >= 2
    for plan in changes:
        assert "USING INTEGER PRIMARY KEY" in plan or "autoindex" in plan, plan
        assert not re.search(r"ix_tasks_(status|type|leases|ready)", plan), plan
