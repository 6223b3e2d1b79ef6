"""Lists by cursor: complete and without doubles, and any text may come as a cursor."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from board.db.engine import Database
from board.db.pages import BadCursor, Key, after, page
from board.tasks.ledger import Ledger
from board.tasks.models import tasks
from tests.heart import CALLER, create, new_task

KEYS = [Key(tasks.c.priority, "priority"), Key(tasks.c.title, "title", True), Key(tasks.c.id, "id")]
BY_TIME = [Key(tasks.c.created_at, "created_at", True), Key(tasks.c.id, "id", True)]


def read(db: Database, keys: list[Key], cursor: str | None, limit: int) -> tuple[list[str], str | None]:
    with db.read() as connection:
        rows = connection.execute(after(select(tasks), keys, cursor, limit)).mappings().all()
    found = page(rows, keys, limit)
    return [row["task_id"] for row in found.rows], found.next_cursor


@pytest.mark.parametrize("keys", [KEYS, BY_TIME], ids=["mixed", "time"])
@pytest.mark.parametrize("limit", [1, 3, 7, 100])
def test_every_row_once_while_others_come(db: Database, keys: list[Key], limit: int) -> None:
    ledger = Ledger()
    names = [f"T-{n}" for n in range(20)]
    with db.write() as tx:
        rows = [new_task(name, priority=n % 4, title="线"[: n % 2]) for n, name in enumerate(names)]
        ledger.create(tx, rows, CALLER)
    seen: list[str] = []
    cursor = None
    while True:
        part, cursor = read(db, keys, cursor, limit)
        seen += part
        if cursor is None:
            break
        assert len(part) == limit
        create(db, ledger, f"new-{len(seen)}", priority=0, title="线")  # before all of them in either order
    assert len(seen) == len(set(seen))
    assert {*names} <= {*seen}


def forged(*values: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "€",
        "%%%",
        forged(),
        forged("priority,-title,id"),
        forged("priority,-title,id", "0", "a", 1),
        forged("priority,-title,id", 0, 1, 1),
        forged("priority,-title,id", 0, "a", 10**30),
        forged("priority,-title,id", 0, "a\0", 1),
        forged("priority,-title,id", 0, "\ud800", 1),
        forged("priority,-title,id", 0, ["t"], 1),
        forged("priority,-title,id", None, "a", 1),
        forged("priority,-title,id", True, "a", 1),
        forged("priority,title,id", 0, "a", 1),
        base64.urlsafe_b64encode(b"[" * 50_000).decode(),
    ],
)
def test_a_cursor_of_somebody_else_is_refused(db: Database, cursor: str) -> None:
    with pytest.raises(BadCursor, match="start again without one"):
        read(db, KEYS, cursor, 10)


@pytest.mark.parametrize("moment", ["2026-01-01T00:00:00", "soon", 5, "0001-01-01T00:00:00+14:00"])
def test_a_time_in_a_cursor_has_its_zone(db: Database, moment: Any) -> None:
    with pytest.raises(BadCursor):
        read(db, BY_TIME, forged("-created_at,-id", moment, 1), 10)


@given(text=st.text())
def test_any_text_may_come_as_a_cursor(text: str) -> None:
    try:
        after(select(tasks), KEYS, text, 10)
    except BadCursor:
        return
    assert text == ""
