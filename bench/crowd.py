"""Very many waiting tasks, made inside PostgreSQL: copies of one that was put in as any other, over the last week."""

from __future__ import annotations

from typing import Any

import psycopg
from sqlalchemy import func, select, text

from bench.boards import MeasuredBoard
from board.tasks.models import task_data, tasks

_TIMES = ("lane_since", "ready_at", "created_at", "updated_at")
_AGO = "interval '7 days' * (1 - n::float8 / :count)"  # the first copy is a week old, the last a moment


def crowd(board: MeasuredBoard, count: int, type: str = "echo", lane: int = 2, **parts: Any) -> None:
    """Put `count` tasks in that wait in one lane, with what they hold; the database's statistics are made anew."""
    board.fill(1, type, priority=f"P{lane}", **parts)
    value = {it.name: it.name for it in tasks.c if it.name != "id"}
    value |= {name: f"{name} - {_AGO}" for name in _TIMES} | {"task_id": "task_id || '-' || n"}
    data = {it.name: it.name for it in task_data.c} | {"task": "tasks.id"}
    with board.board.db.write() as tx:
        model = tx.execute(select(func.max(tasks.c.id))).scalar_one()
        given = {"model": model, "count": count}
        tx.execute(
            text(
                f"INSERT INTO tasks ({', '.join(value)}) SELECT {', '.join(value.values())}"
                " FROM tasks, generate_series(1, :count - 1) AS numbers (n) WHERE id = :model"
            ),
            given,
        )
        tx.execute(
            text(
                f"INSERT INTO task_data ({', '.join(data)}) SELECT {', '.join(data.values())}"
                " FROM task_data, tasks WHERE task_data.task = :model AND tasks.id > :model"
            ),
            given,
        )
    vacuum(board)


def vacuum(board: MeasuredBoard) -> None:
    """What autovacuum would do in its own time: statistics, and no dead rows."""
    with psycopg.connect(board.url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
