"""A hundred thousand tasks that a limit keeps back cost the others nothing, and are found by their indexes."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from sqlalchemy import func, select, text

from board.db.engine import Database
from board.queue import held
from board.queue.wanted import Scope
from board.tasks.models import tasks
from tests.queue.conformance.limiting import claim, end, limited
from tests.rig.working import OpenWorking, WorkingBoard
from tests.tasks.test_plans import plans

BACKLOG = 100_000
CLAIMS = 15


def multiply(board: WorkingBoard, task_id: str, number: int, **columns: str) -> None:
    """So many copies of a task, by one statement. columns: SQL of what differs, which may use the number `n`."""
    series = f"generate_series(1, {number}) AS s(n)"
    if board.board.db.is_sqlite:
        counting = f"WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {number})"
        series = f"({counting} SELECT n FROM s)"
    names = [column.name for column in tasks.c if column.name not in ("id", "task_id")]
    values = [columns.get(name, name) for name in names]
    copying = f"INSERT INTO tasks (task_id, {', '.join(names)}) SELECT task_id || '-' || n, {', '.join(values)}"
    with board.board.db.write() as tx:
        tx.execute(text(f"{copying} FROM {series}, tasks WHERE task_id = :task"), {"task": task_id})
    with board.board.db.write() as tx:
        tx.execute(text("ANALYZE"))


def timed(board: WorkingBoard) -> tuple[list[str], float]:
    begin = time.perf_counter()
    return claim(board, 1), time.perf_counter() - begin


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    return working(start=False)


@pytest.mark.alone
def test_what_waits_behind_a_hundred_thousand_limited_tasks_is_claimed_as_if_they_were_not_there(
    board: WorkingBoard,
) -> None:
    limited(board, 2, concurrency=1)
    board.type("free", use="echo")
    for number in range(3 * CLAIMS):
        board.submit(f"F-{number}", type="free")
    free = iter(f"F-{number}" for number in range(3 * CLAIMS))
    assert claim(board, 1) == ["T-0"]
    before = [timed(board) for _ in range(CLAIMS)]
    assert [names for names, _ in before] == [[next(free)] for _ in range(CLAIMS)]

    # All at once and in front of what is left; nobody has looked at them yet.
    multiply(board, "T-1", BACKLOG, held_by="NULL")
    first = [timed(board) for _ in range(3)]
    assert [names for names, _ in first] == [[next(free)] for _ in range(3)]
    with board.board.db.read() as connection:
        cleared = connection.execute(select(func.count()).where(tasks.c.held_by.is_not(None))).scalar_one()
    assert cleared >= 2000, "the backlog leaves the line in thousands"

    with board.board.db.write() as tx:  # the rest of it, as further claims would
        tx.execute(text("UPDATE tasks SET held_by = 'type:trial' WHERE type = 'trial' AND status = 'pending'"))
        tx.execute(text("ANALYZE") if board.board.db.is_sqlite else text("ANALYZE tasks"))
    after = [timed(board) for _ in range(CLAIMS)]
    assert [names for names, _ in after] == [[next(free)] for _ in range(CLAIMS)]
    # The quickest of each: what the claim itself costs, without what else the machine was doing.
    usual, now = (min(seconds for _, seconds in each) for each in (before, after))
    assert now < 4 * usual, f"{1000 * now:.1f} ms instead of {1000 * usual:.1f} ms"

    end(board, "T-0")
    assert claim(board, 1) == ["T-1"], "the oldest comes first"


def test_held_tasks_are_found_by_their_indexes(board: WorkingBoard) -> None:
    limited(board, 2, concurrency=1)
    multiply(board, "T-0", 20_000, held_by="'type:trial'")
    multiply(board, "T-1", 30_000, held_by="'key:trial:' || (n % 1000)", limit_key="'k' || (n % 1000)")
    with board.board.db.write() as tx:
        tx.execute(text("UPDATE tasks SET status = 'done', held_by = NULL WHERE id % 3 = 0"))
        tx.execute(text("UPDATE tasks SET held_by = NULL, let_in = 'type:trial' WHERE id IN (1, 2)"))
        tx.execute(text("ANALYZE"))
    db: Database = board.board.db
    with db.read() as connection:
        assert len(held.scopes(connection)) == 1001
    among: list[Any] = [tasks.c.pool == "board", tasks.c.lane.in_(Scope().lanes)]
    with plans(db) as counting, db.read() as connection:
        held.let_in_already(connection, among)
        held.running(connection)
    with plans(db) as looking, db.read() as connection:
        held.scopes(connection)
        held.holding(connection, ["type:trial", "key:trial:1", "type:none"])
    with plans(db, "ORDER BY") as letting, db.write() as tx:
        assert len(held.let_in(tx, "type:trial", 5, among)) == 5
        held.head(tx, 2, Scope().ready(), (), 100)
    # What runs is found by its lease or its status, as the database likes.
    indexes = [
        "ix_tasks_let_in",
        "ix_tasks_",
        "ix_tasks_held",
        "ix_tasks_held",
        "ix_tasks_held",
        "ix_tasks_ready",
    ]
    for plan, index in zip([*counting, *looking, *letting], indexes, strict=True):
        assert index in plan, plan
        assert not re.search(r"(Seq Scan on|SCAN) tasks\b", plan, re.MULTILINE), plan
        # What runs and what was let in is little, and is sorted to be counted.
        few = plan in counting or not re.search(r"(?<!Incremental )Sort  |TEMP B-TREE FOR ORDER BY", plan)
        assert few, plan


@pytest.mark.alone
def test_a_thousand_held_keys_are_told_in_one_look_each(board: WorkingBoard) -> None:
    """Not by walking through what they hold: with ten times as much behind them the look takes about as long."""
    limited(board, 1, concurrency=1)
    took = []
    for number in (5_000, 50_000):
        multiply(board, "T-0", number, held_by="'key:trial:' || (n % 1000)", type=f"'t{number}'")
        with board.board.db.read() as connection:
            looks = []
            for _ in range(30):
                begin = time.perf_counter()
                assert len(held.scopes(connection)) == 1000
                looks.append(time.perf_counter() - begin)
            took.append(min(looks))  # the quickest: without what else the machine was doing
        with board.board.db.write() as tx:
            tx.execute(text("DELETE FROM tasks WHERE task_id <> 'T-0'"))
    assert took[1] < 4 * took[0], took
