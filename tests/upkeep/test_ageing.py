"""Nobody starves: rises by one lane for waiting and for a near deadline, never into P0, each with its event."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from board.db.engine import Database
from board.tasks.history import By
from board.tasks.ledger import Ledger
from board.tasks.models import task_events, tasks
from board.upkeep import ageing
from tests.heart import new_task

BY = By("key", "tests", "api")


def put(db: Database, task_id: str, priority: int, *, waited: float = 0, **columns: Any) -> None:
    """A waiting task that has been ready in its lane for `waited` seconds."""
    moment = datetime.now(UTC) - timedelta(seconds=waited)
    with db.write() as tx:
        Ledger().create(tx, [new_task(task_id, priority=priority)], BY)
        values = {"lane_since": moment, "ready_at": moment, **columns}
        tx.execute(update(tasks).where(tasks.c.task_id == task_id).values(**values))


def age(db: Database) -> int:
    return ageing.age(db, Ledger(), 300)


def lanes(db: Database) -> dict[str, int]:
    with db.read() as connection:
        return {row.task_id: row.lane for row in connection.execute(select(tasks.c.task_id, tasks.c.lane))}


def events(db: Database, kind: str) -> list[dict[str, Any]]:
    with db.read() as connection:
        query = select(task_events.c.data, task_events.c.seq).where(task_events.c.kind == kind)
        return [dict(row) for row in connection.execute(query).mappings()]


def test_what_waited_long_enough_rises_by_one_lane(db: Database) -> None:
    for priority in range(4):
        put(db, f"old-{priority}", priority, waited=301)
        put(db, f"new-{priority}", priority, waited=200)
    assert age(db) == 2
    assert lanes(db) == {
        "old-0": 0, "old-1": 1, "old-2": 1, "old-3": 2, "new-0": 0, "new-1": 1, "new-2": 2, "new-3": 3
    }  # fmt: skip
    assert sorted(event["data"]["from"] for event in events(db, "aged")) == ["P2", "P3"]
    assert all(event["seq"] == 2 for event in events(db, "aged"))


def test_a_task_that_has_just_risen_waits_again_in_its_new_lane(db: Database) -> None:
    put(db, "old", 3, waited=10_000)
    assert [age(db) for _ in range(3)] == [1, 0, 0]
    assert lanes(db) == {"old": 2}


def test_a_task_that_is_not_ready_yet_does_not_age(db: Database) -> None:
    put(db, "later", 3, waited=10_000, ready_at=datetime.now(UTC) + timedelta(hours=1))
    put(db, "just-ready", 3, waited=10_000, ready_at=datetime.now(UTC))
    assert age(db) == 0


def test_at_most_so_many_rise_in_one_sweep_the_oldest_first(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ageing, "BATCH", 2)
    for number in range(4):
        put(db, f"t-{number}", 3, waited=1000 - number)
    assert age(db) == 2
    assert lanes(db) == {"t-0": 2, "t-1": 2, "t-2": 3, "t-3": 3}


def test_a_near_deadline_lifts_once_and_never_into_p0(db: Database) -> None:
    near = {
        "deadline_at": datetime.now(UTC) + timedelta(minutes=1),
        "hurry_at": datetime.now(UTC) - timedelta(seconds=1),
    }
    far = {"deadline_at": datetime.now(UTC) + timedelta(hours=1), "hurry_at": datetime.now(UTC) + timedelta(minutes=50)}
    put(db, "p3", 3, **near)
    put(db, "p1", 1, **near)
    put(db, "far", 3, **far)
    assert [ageing.hurry(db, Ledger()), ageing.hurry(db, Ledger())] == [1, 0]
    assert lanes(db) == {"p3": 2, "p1": 1, "far": 3}
    assert [event["data"] for event in events(db, "hurried")] == [{"from": "P3", "to": "P2"}]


def test_the_last_tenth_of_the_time_begins_as_computed_at_creation(db: Database) -> None:
    deadline = datetime.now(UTC) + timedelta(seconds=1000)
    with db.write() as tx:
        row = new_task("d", priority=3, deadline_at=deadline)
        Ledger().create(tx, [row], BY)
    with db.read() as connection:
        hurry_at = connection.execute(select(tasks.c.hurry_at)).scalar_one()
    assert abs((deadline - hurry_at).total_seconds() - 100) < 2


def test_a_missed_deadline_is_marked_once_and_changes_nothing_else(db: Database) -> None:
    put(db, "late", 2, deadline_at=datetime.now(UTC) - timedelta(seconds=1))
    put(db, "in time", 2, deadline_at=datetime.now(UTC) + timedelta(hours=1))
    put(db, "ended", 2, deadline_at=datetime.now(UTC) - timedelta(seconds=1), status="done")
    assert [ageing.mark_missed(db, Ledger()), ageing.mark_missed(db, Ledger())] == [1, 0]
    with db.read() as connection:
        rows = {row.task_id: row for row in connection.execute(select(tasks))}
    assert (rows["late"].deadline_missed, rows["late"].status, rows["late"].lane) == (True, "pending", 2)
    assert (rows["in time"].deadline_missed, rows["ended"].deadline_missed) == (False, False)
    [said] = events(db, "deadline_missed")
    assert said["data"] == {"deadline_at": rows["late"].deadline_at.isoformat().replace("+00:00", "Z"), "owner": None}


def test_who_waits_long_in_p1_or_p0_comes_first_there_but_only_where_others_do(db: Database) -> None:
    """Callers on the line come first as soon as they come; without end, they would keep the others waiting for ever."""
    for lane in (0, 1):
        put(db, f"old-{lane}", lane, waited=301)
        put(db, f"new-{lane}", lane, waited=200)
    assert age(db) == 0, "nobody goes before them"
    put(db, "on the line", 1, rank=0)
    assert [age(db), age(db)] == [1, 0]
    with db.read() as connection:
        ranks = {row.task_id: row.rank for row in connection.execute(select(tasks.c.task_id, tasks.c.rank))}
    assert ranks == {"old-0": 1, "new-0": 1, "old-1": 0, "new-1": 1, "on the line": 0}
    assert [event["data"] for event in events(db, "aged")] == [{"from": "P1", "to": "P1", "first": True}]


def test_the_oldest_rises_first_whenever_it_came_into_its_lane(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ageing, "BATCH", 1)
    put(db, "young", 2, waited=400)
    put(db, "old", 2, waited=1000, lane_since=datetime.now(UTC) - timedelta(seconds=350))
    assert age(db) == 1
    assert lanes(db) == {"young": 2, "old": 1}


def test_what_a_limit_holds_back_ages_too(db: Database) -> None:
    put(db, "held", 3, waited=301, held_by="type:t")
    assert age(db) == 1
    assert lanes(db) == {"held": 2}


def test_a_near_deadline_beyond_a_full_batch_has_its_turn_next_time(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ageing, "BATCH", 2)
    for number in range(3):
        near = {"deadline_at": datetime.now(UTC) + timedelta(minutes=1), "hurry_at": datetime.now(UTC)}
        put(db, f"t-{number}", 3, **near)
    assert [ageing.hurry(db, Ledger()) for _ in range(3)] == [2, 1, 0]
    assert set(lanes(db).values()) == {2}
