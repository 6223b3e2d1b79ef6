"""What happens to a task while it waits, and to many claimers at once."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import Connection, RowMapping

from board.db.clock import now, read_now
from board.queue.wanted import Scope
from board.tasks.ledger import find
from board.tasks.states import Move, Pool
from board.upkeep import ageing
from tests.heart import CALLER, OPERATOR
from tests.queue.conftest import Hall


def row_of(connection: Connection, task_id: str) -> RowMapping:
    row = find(connection, task_id)
    assert row is not None
    return row


def cancel(hall: Hall, task_id: str) -> None:
    with hall.db.write() as tx:
        hall.ledger.cancel(tx, row_of(tx, task_id), CALLER, None)


def edit(hall: Hall, task_id: str, **changes: object) -> None:
    with hall.db.write() as tx:
        row = row_of(tx, task_id)
        hall.ledger.edit(tx, row, OPERATOR, changes=changes, data={}, details={"x": 1})


def test_a_cancelled_task_is_not_given_and_holds_nothing_up(hall: Hall) -> None:
    hall.put(*(f"T-{number:03}" for number in range(200)))
    for number in range(199):
        cancel(hall, f"T-{number:03}")
    assert hall.claim(2) == ["T-199"]


def test_a_task_requeued_is_given_again_and_only_once(hall: Hall) -> None:
    hall.put("T-1")
    cancel(hall, "T-1")
    with hall.db.write() as tx:
        hall.ledger.move(tx, row_of(tx, "T-1"), Move.REQUEUE, OPERATOR, changes={"ready_at": now()})
    assert hall.claim(5) == ["T-1"]
    assert hall.claim(5) == []


def test_another_priority_is_another_lane(hall: Hall) -> None:
    hall.put("T-1", "T-2")
    edit(hall, "T-2", priority=0, lane=0)
    edit(hall, "T-1", priority=3, lane=3)
    assert hall.claim(5, scope=Scope(only_lanes=[2])) == []
    assert hall.claim(1, rest=0) == ["T-2"]
    assert hall.claim(5, scope=Scope(only_lanes=[3])) == ["T-1"]


def test_put_off_and_brought_forward(hall: Hall) -> None:
    hall.put("T-1", "T-2")
    with hall.db.read() as connection:
        moment = read_now(connection)
    edit(hall, "T-1", ready_at=moment + timedelta(hours=1))
    edit(hall, "T-2", ready_at=moment + timedelta(hours=2))
    assert hall.claim(5) == []
    edit(hall, "T-2", ready_at=moment)
    assert hall.claim(5) == ["T-2"]
    hall.at(3601)
    assert hall.claim(5) == ["T-1"]


def test_what_waited_long_has_risen_and_stands_before_what_came_later(hall: Hall) -> None:
    hall.put("aged", lane=3)
    hall.at(301)
    hall.put("young", lane=2)
    assert ageing.age(hall.db, hall.ledger, 300) == 1
    assert hall.claim(5, scope=Scope(only_lanes=[3])) == []
    assert hall.claim(5, scope=Scope(only_lanes=[2])) == ["aged", "young"]


def test_what_nears_its_deadline_has_risen(hall: Hall) -> None:
    with hall.db.read() as connection:
        moment = read_now(connection)
    hall.put("near", lane=2, deadline_at=moment + timedelta(seconds=100))
    hall.at(91)
    assert ageing.hurry(hall.db, hall.ledger) == 1
    assert hall.claim(5, scope=Scope(only_lanes=[1])) == ["near"]


def test_what_is_done_outside_acts_inside(hall: Hall) -> None:
    hall.put("T-1", home_pool=Pool.OUTSIDE)
    [row] = hall.take(scope=Scope(Pool.OUTSIDE)).rows
    hall.end(row, Move.PROCEED, ready_at=now(), has_action=True)
    assert hall.claim(5, scope=Scope(Pool.OUTSIDE)) == []
    assert hall.claim(5) == ["T-1"]


def test_what_comes_with_the_claim_is_in_its_transaction(hall: Hall) -> None:
    hall.put("T-1")
    seen: list[str] = []

    def within(tx: Connection, rows: Sequence[RowMapping]) -> None:
        assert row_of(tx, "T-1")["status"] == "running"
        seen.extend(row["task_id"] for row in rows)

    assert hall.claim(within=within) == seen == ["T-1"]


def test_a_claim_that_fails_takes_nothing(hall: Hall) -> None:
    hall.put("T-1")

    def within(tx: Connection, rows: Sequence[RowMapping]) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        hall.claim(within=within)
    with hall.db.read() as connection:
        row = row_of(connection, "T-1")
        assert (row["status"], row["lease_token"]) == ("pending", 0)


def test_many_claimers_share_no_task_and_leave_none(hall: Hall) -> None:
    for lane in range(4):
        hall.fill([lane], 75)
    together = threading.Barrier(8)

    def keep_claiming(number: int) -> list[str]:
        together.wait()
        mine: list[str] = []
        while found := hall.claim(1 + number, worker=f"w{number}"):
            mine += found
        return mine

    with ThreadPoolExecutor(8) as threads:
        taken = list(itertools.chain(*threads.map(keep_claiming, range(8))))
    assert len(taken) == len(set(taken)), "a task was given twice"
    taken += hall.claim(100)  # what another was just looking at
    assert len(taken) == 300
