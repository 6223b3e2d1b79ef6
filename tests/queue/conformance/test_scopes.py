"""What a claimer may take, and what it must leave to others."""

from __future__ import annotations

from sqlalchemy import update

from board.queue.ledger_queue import SUSPECT_PATIENCE
from board.queue.wanted import Scope
from board.tasks.models import tasks
from board.tasks.states import Move, Pool
from tests.queue.conftest import Hall


def test_only_the_lanes_asked_for(hall: Hall) -> None:
    hall.fill(range(4), 2)
    assert hall.claim(10, scope=Scope(only_lanes=[3, 1])) == ["P1-000", "P1-001", "P3-000", "P3-001"]
    assert hall.claim(10, scope=Scope(only_lanes=[1])) == []
    assert hall.claim(10) == ["P0-000", "P0-001", "P2-000", "P2-001"]


def test_only_the_types_asked_for_and_the_rest_is_left_to_others(hall: Hall) -> None:
    hall.put("a1", "a2", type="a")
    hall.put("b1", type="b")
    hall.put("c1", type="c", lane=0)
    assert hall.claim(10, scope=Scope(only_types=["a", "b"])) == ["a1", "a2", "b1"]
    assert hall.claim(10, scope=Scope(only_types=["a", "b"])) == []
    assert hall.claim(10) == ["c1"]


def test_a_paused_type_waits_unharmed_and_holds_nothing_up(hall: Hall) -> None:
    hall.put(*(f"a{number:02}" for number in range(40)), type="a")
    hall.put("b1", "b2", type="b")
    paused = Scope(without_types=["a"])
    assert [hall.claim(scope=paused), hall.claim(scope=paused), hall.claim(scope=paused)] == [["b1"], ["b2"], []]
    assert hall.claim(40) == [f"a{number:02}" for number in range(40)]


def test_each_pool_to_its_own(hall: Hall) -> None:
    hall.put("inside")
    hall.put("outside", home_pool=Pool.OUTSIDE)
    assert hall.claim(10, scope=Scope(Pool.OUTSIDE)) == ["outside"]
    assert hall.claim(10, scope=Scope(Pool.OUTSIDE)) == []
    assert hall.claim(10) == ["inside"]


def test_a_suspect_runs_alone_and_before_all_others(hall: Hall) -> None:
    [task] = hall.put("T-1", lane=3)
    with hall.db.write() as tx:
        tx.execute(update(tasks).where(tasks.c.id == task).values(suspect=True))
    hall.put("T-2", "T-3", lane=0)
    assert hall.claim(10, busy=True) == [], "beside other work it is not begun, and nothing else is until then"
    taken = hall.take(10)
    assert ([row["task_id"] for row in taken.rows], taken.alone) == (["T-1"], True)
    taken = hall.take(10)
    assert ([row["task_id"] for row in taken.rows], taken.alone) == (["T-2", "T-3"], False)


def test_a_suspect_that_has_waited_long_begins_beside_what_runs(hall: Hall) -> None:
    [task] = hall.put("T-1")
    with hall.db.write() as tx:
        tx.execute(update(tasks).where(tasks.c.id == task).values(suspect=True))
    hall.put("T-2")
    hall.at(SUSPECT_PATIENCE + 1)
    assert hall.claim(10, busy=True) == ["T-1"]
    assert hall.claim(10, busy=True) == ["T-2"]


def test_what_needs_another_task_waits_for_it(hall: Hall) -> None:
    [task] = hall.put("needy")
    hall.put("T-2")
    needs = update(tasks).where(tasks.c.id == task).returning(tasks)
    with hall.db.write() as tx:
        tx.execute(needs.values(unmet_needs=1))
    assert hall.claim(5) == ["T-2"]
    assert hall.claim(5) == []
    with hall.db.write() as tx:
        hall.ledger.tell_places(tx, tx.execute(needs.values(unmet_needs=0)).mappings().all())
    assert hall.claim(5) == ["needy"]


def test_a_type_that_a_claimer_cannot_do_is_left_to_others_unless_it_was_begun(hall: Hall) -> None:
    hall.put("new", type="rare", lane=0)
    hall.put("usual", lane=1)
    able, unable = Scope(), Scope(only_begun=["rare"])
    assert hall.claim(scope=unable) == ["usual"]
    assert hall.claim(scope=unable) == []
    [row] = hall.take(scope=able).rows
    hall.end(row, Move.HAND_BACK, ready_at=row["ready_at"])
    assert hall.claim(scope=unable) == ["new"], "perhaps a call of it is out, and nobody else is there to ask"
