"""What `read` and `write` promise, on both databases."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from sqlalchemy import Connection, func, select, text

from board.db.engine import Database, after_commit, after_commit_with, normal_url
from board.db.locks import Turn, wait_for_turn
from board.db.types import dump_json
from board.tasks.ledger import Ledger
from board.tasks.models import task_data, tasks
from tests.heart import CALLER, create, new_task


def count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(tasks)).scalar_one()


def test_a_read_sees_one_moment(db: Database) -> None:
    with db.read() as connection:
        assert count(connection) == 0
        create(db, Ledger(), "T-1")
        assert count(connection) == 0
    with db.read() as connection:
        assert count(connection) == 1


def test_nothing_written_through_a_read_is_kept(db: Database) -> None:
    with db.read() as connection:
        Ledger().create(connection, [new_task("T-1")], CALLER)
    with db.read() as connection:
        assert count(connection) == 0


def test_a_failed_write_leaves_nothing_and_wakes_nobody(db: Database) -> None:
    woken: list[str] = []

    def fail() -> None:
        with db.write() as tx:
            Ledger().create(tx, [new_task("T-1")], CALLER)
            after_commit(tx, lambda: woken.append("failed"))
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    with db.write() as tx:
        assert count(tx) == 0
        after_commit(tx, lambda: woken.append("good"))
        assert woken == []
    assert woken == ["good"]


def test_one_word_for_all_that_a_transaction_has_to_say(db: Database) -> None:
    words: list[list[int]] = []

    def hear(numbers: Sequence[int]) -> None:
        words.append(list(numbers))

    for numbers in ([1, 2], [], [3]):
        with db.write() as tx:
            for number in numbers:
                after_commit_with(tx, hear, [number])
    with suppress(LookupError), db.write() as tx:
        after_commit_with(tx, hear, [4])
        raise LookupError
    assert words == [[1, 2], [3]]


def test_what_follows_a_commit_may_write_itself(db: Database) -> None:
    with db.write() as tx:
        after_commit(tx, lambda: create(db, Ledger(), "T-2") and None)
    with db.read() as connection:
        assert count(connection) == 1


def test_many_writers_add_up(db: Database) -> None:
    """A read and a later write in one transaction: on SQLite a deferred one would fail or lose updates."""
    task = create(db, Ledger(), "T-1")

    def add(_: int) -> None:
        with db.write() as tx:
            row = Ledger().lock(tx, task)
            tx.execute(text("UPDATE tasks SET retry_count = :n"), {"n": row["retry_count"] + 1})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(80)))
    with db.read() as connection:
        assert connection.execute(select(tasks.c.retry_count)).scalar_one() == 80


def test_a_turn_is_had_by_one_at_a_time(db: Database) -> None:
    inside = threading.Semaphore(1)

    def work(_: int) -> bool:
        with db.write() as tx:
            wait_for_turn(tx, Turn.CATALOGUE)
            alone = inside.acquire(blocking=False)
            tx.execute(select(func.board_now()))
            if alone:
                inside.release()
            return alone

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(40)))


def test_json_keeps_every_digit_and_character(db: Database) -> None:
    payload = {"id": 653247040368672768, "big": 10**400, "text": "线索 ünïcode \u2028 😀", "one": 1.0, "none": None}
    task = create(db, Ledger(), "T-1", data={"payload": payload, "payload_hash": "", "origin": None, "note": None})
    with db.read() as connection:
        back = connection.execute(select(task_data.c.payload).where(task_data.c.task == task)).scalar_one()
        raw = connection.execute(text("SELECT payload, origin FROM task_data")).one()
    assert back == payload
    assert list(back) == list(payload)
    assert raw == (dump_json(payload), None)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_json_has_not_is_never_stored(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump_json({"score": value})


def test_case_is_told_apart_alike_on_both_databases(db: Database) -> None:
    with db.read() as connection:
        query = select(func.lower("ÜBER Straße"), func.strpos("tag VIP", "VIP"), func.strpos("tag VIP", "vip"))
        assert tuple(connection.execute(query).one()) == ("über straße", 5, 0)


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("postgresql://u:p@host/board", "postgresql+psycopg://u:p@host/board"),
        ("postgres://u:p@host/board", "postgresql+psycopg://u:p@host/board"),
        ("postgresql+psycopg://u:p@host/board", "postgresql+psycopg://u:p@host/board"),
        ("sqlite:///data/board.db", "sqlite:///data/board.db"),
    ],
)
def test_addresses_get_their_driver(given: str, normal: str) -> None:
    assert normal_url(given).render_as_string(hide_password=False) == normal
