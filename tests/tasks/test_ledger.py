"""Making, claiming and holding tasks: who gets what, in which order, and what a stale hand can still do (nothing)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select, update

from board.db.clock import now, read_now
from board.db.engine import Database
from board.queue.wanted import Scope
from board.tasks.followers import Moved, When
from board.tasks.ledger import Lease, Ledger, Stale
from board.tasks.models import attempts, task_data, task_events, tasks
from board.tasks.settlements import Settlement
from board.tasks.states import IllegalMove, Move, Status
from tests.heart import CALLER, OPERATOR, SWEEP, WORKER, claim, create, events_of, new_task, row_of, take


def lease_of(row: Any) -> Lease:
    return Lease(row["id"], row["lease_token"])


def settle(db: Database, ledger: Ledger, lease: Lease, move: Move, **more: Any) -> Moved | None:
    with db.write() as tx:
        return ledger.settle(tx, lease, move, WORKER, **more)


# -- made once ----------------------------------------------------------------------------------------------------


def test_racing_callers_make_a_task_once(db: Database, ledger: Ledger) -> None:
    start = threading.Barrier(8)

    def make(number: int) -> int:
        start.wait()
        made = 0
        for round_ in range(10):
            data = {"payload": {"by": number}, "payload_hash": str(number), "origin": None, "note": None}
            with db.write() as tx:
                made += len(ledger.create(tx, [new_task(f"T-{round_}", data=data)], CALLER))
        return made

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(make, range(8)))
    assert sum(made) == 10
    with db.read() as connection:
        for table in (tasks, task_data, task_events):
            assert connection.execute(select(func.count()).select_from(table)).scalar_one() == 10


def test_of_twins_in_one_call_the_first_counts(db: Database, ledger: Ledger) -> None:
    with db.write() as tx:
        rows = [new_task("T-1", title=title, data=new_task("")["data"] | {"note": title}) for title in ("one", "two")]
        made = ledger.create(tx, rows, CALLER)
    task = made["T-1"]
    with db.read() as connection:
        assert connection.execute(select(task_data.c.note).where(task_data.c.task == task)).scalar_one() == "one"
    assert row_of(db, task)["title"] == "one"


def test_nothing_is_left_of_a_call_that_failed(db: Database, ledger: Ledger) -> None:
    def refuse(*_: Any) -> None:
        raise LookupError

    ledger.followers.append(refuse)
    with pytest.raises(LookupError):
        create(db, ledger, "T-1")
    ledger.followers.clear()
    task = create(db, ledger, "T-1")
    ledger.followers.append(refuse)
    with pytest.raises(LookupError):
        claim(db, ledger)
    assert row_of(db, task)["status"] == "pending"
    with db.read() as connection:
        assert len(events_of(connection, task)) == 1
        assert connection.execute(select(func.count()).select_from(attempts)).scalar_one() == 0


# -- claimed ------------------------------------------------------------------------------------------------------


def test_a_claim_writes_who_and_until_when(db: Database, ledger: Ledger) -> None:
    create(db, ledger, "T-1", type_version=7)
    (row,) = claim(db, ledger, worker="w9", lease=30)
    assert (row["status"], row["lease_owner"], row["lease_token"], row["version"]) == ("running", "w9", 1, 2)
    assert abs(row["lease_until"] - row["started_at"] - timedelta(seconds=30)) < timedelta(seconds=1)
    with db.read() as connection:
        attempt = connection.execute(select(attempts)).mappings().one()
        event = events_of(connection, row["id"])[-1]
    assert (attempt["number"], attempt["worker"], attempt["type_version"], attempt["phase"]) == (1, "w9", 7, "work")
    assert (event["kind"], event["from_status"], event["to_status"]) == ("started", "pending", "running")
    assert (event["actor_kind"], event["actor_name"], event["attempt"]) == ("worker", "w9", 1)
    assert claim(db, ledger) == []


def test_no_task_is_given_to_two_workers(db: Database, ledger: Ledger) -> None:
    with db.write() as tx:
        ledger.create(tx, [new_task(f"T-{n}", priority=n % 4) for n in range(400)], CALLER)
    start = threading.Barrier(8)

    def work(number: int) -> list[int]:
        start.wait()
        got: list[int] = []
        empty = 0
        while empty < 2:
            with db.write() as tx:
                rows = take(tx, ledger, 7, f"w{number}")
            got += [row["id"] for row in rows]
            empty = 0 if rows else empty + 1
        return got

    with ThreadPoolExecutor(8) as threads:
        shares = list(threads.map(work, range(8)))
    given = Counter(task for share in shares for task in share)
    assert len(given) == 400
    assert set(given.values()) == {1}
    with db.read() as connection:
        assert connection.execute(select(func.count()).select_from(attempts)).scalar_one() == 400
        assert connection.execute(select(func.max(tasks.c.lease_token))).scalar_one() == 1


def test_urgent_work_first_then_by_age_then_by_id(db: Database, ledger: Ledger, at: Callable[[float], None]) -> None:
    def put(seconds: float, *names: str) -> None:
        at(seconds)
        with db.write() as tx:
            ledger.create(tx, [new_task(name, priority=int(name[1])) for name in names], CALLER)

    put(0, "P2-first", "P3-first", "P2-second")
    put(10, "P1-late", "P2-late", "P0-late")
    put(5, "P2-middle", "P1-early")
    at(20)
    taken: list[str] = []
    while True:
        with db.write() as tx:
            rows = take(tx, ledger, 3)
        if not rows:
            break
        taken += [row["task_id"] for row in rows]
    assert taken == ["P0-late", "P1-early", "P1-late", "P2-first", "P2-second", "P2-middle", "P2-late", "P3-first"]


def test_a_lane_gives_only_its_own(db: Database, ledger: Ledger) -> None:
    with db.write() as tx:
        ledger.create(tx, [new_task(f"P{n}", priority=n) for n in range(4)], CALLER)
    assert [row["task_id"] for row in claim(db, ledger, lane=3)] == ["P3"]
    assert claim(db, ledger, lane=3) == []
    with db.write() as tx:
        rows = take(tx, ledger, 9, scope=Scope(only_lanes=[1, 2]))
    assert [row["task_id"] for row in rows] == ["P1", "P2"]


def test_what_is_for_later_waits(db: Database, ledger: Ledger, at: Callable[[float], None]) -> None:
    with db.read() as connection:
        moment = read_now(connection)
    create(db, ledger, "later", run_after=moment + timedelta(hours=1))
    create(db, ledger, "before", run_after=moment - timedelta(hours=1))
    assert [row["task_id"] for row in claim(db, ledger)] == ["before"]
    at(3590)
    assert claim(db, ledger) == []
    at(3601)
    assert [row["task_id"] for row in claim(db, ledger)] == ["later"]


def test_a_retry_is_ready_only_at_its_time(db: Database, ledger: Ledger, at: Callable[[float], None]) -> None:
    task = create(db, ledger, "T-1")
    (row,) = claim(db, ledger)
    settle(db, ledger, lease_of(row), Move.RETRY, changes={"ready_at": now(30.0), "retry_count": 1})
    assert claim(db, ledger) == []
    at(31)
    (again,) = claim(db, ledger)
    assert (again["id"], again["lease_token"]) == (task, 2)


def test_only_types_that_are_asked_for(db: Database, ledger: Ledger) -> None:
    for name in ("a", "b", "c"):
        create(db, ledger, name, type=name)
    with db.write() as tx:
        taken = take(tx, ledger, 9, scope=Scope(only_types=["a", "c", "z"], without_types=["c"]))
        assert [row["type"] for row in taken] == ["a"]
        assert take(tx, ledger, 9, scope=Scope(only_types=[])) == []
        assert [row["type"] for row in take(tx, ledger, 9)] == ["b", "c"]


def test_suspects_come_only_when_asked_for(db: Database, ledger: Ledger) -> None:
    suspect = create(db, ledger, "suspect")
    create(db, ledger, "sound")
    with db.write() as tx:
        tx.execute(update(tasks).where(tasks.c.id == suspect).values(suspect=True))
    assert [row["task_id"] for row in claim(db, ledger, limit=1)] == ["sound"]
    assert claim(db, ledger) == []
    assert [row["task_id"] for row in claim(db, ledger, suspects=True)] == ["suspect"]


def test_what_has_nothing_left_to_do_is_not_claimed(db: Database, ledger: Ledger) -> None:
    for name, has_action in [("waits", False), ("acts", True)]:
        create(db, ledger, name)
        (row,) = claim(db, ledger)
        settle(db, ledger, lease_of(row), Move.PROCEED, changes={"has_action": has_action})
    assert [row["task_id"] for row in claim(db, ledger)] == ["acts"]


def test_tasks_with_unmet_needs_are_not_claimed(db: Database, ledger: Ledger) -> None:
    task = create(db, ledger, "T-1")
    with db.write() as tx:
        tx.execute(update(tasks).values(unmet_needs=1))
    assert claim(db, ledger) == []
    with db.write() as tx:
        tx.execute(update(tasks).values(unmet_needs=0))
    assert [row["id"] for row in claim(db, ledger)] == [task]


# -- held ---------------------------------------------------------------------------------------------------------


def test_a_heartbeat_prolongs_what_is_still_held(db: Database, ledger: Ledger, at: Callable[[float], None]) -> None:
    for name in ("kept", "done", "other"):
        create(db, ledger, name)
    leases = {row["task_id"]: lease_of(row) for row in claim(db, ledger, limit=2)}
    (other,) = claim(db, ledger, worker="w2")
    settle(db, ledger, leases["done"], Move.SUCCEED)
    at(50)
    with db.write() as tx:
        asked = [*leases.values(), lease_of(other), Lease(10**9, 1)]
        alive = ledger.renew(tx, "w1", asked, 60)
    assert set(alive) == {leases["kept"].task}
    until = row_of(db, leases["kept"].task)["lease_until"]
    with db.read() as connection:
        assert timedelta(seconds=55) < until - read_now(connection) <= timedelta(seconds=60)
    assert row_of(db, other["id"])["lease_until"] == other["lease_until"]
    with db.write() as tx:
        assert ledger.renew(tx, "w1", [], 60) == {}


def test_a_heartbeat_tells_of_a_cancellation(db: Database, ledger: Ledger) -> None:
    task = create(db, ledger, "T-1")
    (row,) = claim(db, ledger)
    with db.write() as tx:
        assert ledger.cancel(tx, ledger.lock(tx, task), OPERATOR, "stop") is None
        alive = ledger.renew(tx, "w1", [lease_of(row)], 60)
    assert alive[task]["cancel_requested"]


@pytest.mark.parametrize(
    "move", [Move.SUCCEED, Move.FAIL, Move.RETRY, Move.ASK, Move.HAND_BACK, Move.STOP, Move.PROCEED]
)
def test_a_lost_lease_settles_nothing(db: Database, ledger: Ledger, move: Move) -> None:
    task = create(db, ledger, "T-1")
    (old,) = claim(db, ledger)
    with db.write() as tx:
        ledger.move(tx, ledger.lock(tx, task), Move.RESCUE, SWEEP)
    (new,) = claim(db, ledger, worker="w2")
    before = row_of(db, task)
    assert settle(db, ledger, lease_of(old), move, changes={"title": "late"}, data={"result": "late"}) is None
    after = row_of(db, task)
    assert after == before | {"event_seq": after["event_seq"]}
    with db.read() as connection:
        event = events_of(connection, task)[-1]
        assert connection.execute(select(task_data.c.result)).scalar_one() is None
    assert (event["kind"], event["to_status"]) == ("stale_result", None)
    assert settle(db, ledger, lease_of(new), Move.SUCCEED) is not None


def test_a_result_counts_once(db: Database, ledger: Ledger) -> None:
    create(db, ledger, "T-1")
    (row,) = claim(db, ledger)
    start = threading.Barrier(8)

    def finish(number: int) -> bool:
        start.wait()
        data = {"result": number}
        return settle(db, ledger, lease_of(row), Move.SUCCEED, data=data) is not None

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(finish, range(8))).count(True) == 1
    with db.read() as connection:
        kinds = [event["kind"] for event in events_of(connection, row["id"])]
    assert kinds.count("done") == 1
    assert kinds.count("stale_result") == 7


@pytest.mark.parametrize("move", [Move.SUCCEED, Move.FAIL, Move.RETRY, Move.ASK, Move.HAND_BACK])
def test_a_task_that_is_to_stop_can_only_stop(db: Database, ledger: Ledger, move: Move) -> None:
    task = create(db, ledger, "T-1")
    (row,) = claim(db, ledger)
    with db.write() as tx:
        ledger.cancel(tx, ledger.lock(tx, task), OPERATOR, None)
    assert settle(db, ledger, lease_of(row), move) is None
    assert row_of(db, task)["status"] == "running"
    with db.read() as connection:
        assert ledger.cancelling(connection, lease_of(row))
        assert not ledger.cancelling(connection, Lease(task, 99))
        assert [event["kind"] for event in events_of(connection, task)] == ["created", "started", "cancel_requested"]
    assert settle(db, ledger, lease_of(row), Move.STOP) is not None


# -- moved by people ------------------------------------------------------------------------------------------------


def test_a_row_that_was_read_too_early_moves_nothing(db: Database, ledger: Ledger) -> None:
    task = create(db, ledger, "T-1")
    with db.write() as tx:
        early = ledger.lock(tx, task)
    with db.write() as tx:
        ledger.edit(tx, early, OPERATOR, changes={"title": "new"}, data={}, details={"title": "new"})
    before = row_of(db, task)
    for attempt in (
        lambda tx: ledger.move(tx, early, Move.CANCEL, OPERATOR),
        lambda tx: ledger.edit(tx, early, OPERATOR, changes={"title": "x"}, data={"note": "x"}, details={}),
    ):
        with pytest.raises(Stale), db.write() as tx:
            attempt(tx)
    assert row_of(db, task) == before


def test_a_guard_that_does_not_hold_moves_nothing(db: Database, ledger: Ledger) -> None:
    task = create(db, ledger, "T-1")
    claim(db, ledger, lease=60)
    before = row_of(db, task)
    guards = [tasks.c.lease_until < now()]
    with pytest.raises(Stale), db.write() as tx:
        ledger.move(tx, ledger.lock(tx, task), Move.RESCUE, SWEEP, guards=guards)
    assert row_of(db, task) == before


@pytest.mark.parametrize("status", [Status.PENDING, Status.RUNNING, Status.DONE])
def test_a_move_from_the_wrong_place_is_refused(db: Database, ledger: Ledger, status: Status) -> None:
    task = create(db, ledger, "T-1")
    if status is not Status.PENDING:
        (row,) = claim(db, ledger)
        if status is Status.DONE:
            settle(db, ledger, lease_of(row), Move.SUCCEED)
    before = row_of(db, task)
    for move in (Move.REQUEUE, Move.APPROVE, Move.RUN_NOW, Move.FINISH):
        with pytest.raises(IllegalMove, match=f"A task that is {status} cannot"), db.write() as tx:
            ledger.move(tx, ledger.lock(tx, task), move, OPERATOR)
    assert row_of(db, task) == before


def test_followers_hear_of_every_move_inside_its_transaction(db: Database, ledger: Ledger) -> None:
    heard: list[tuple[str, str | None, str, bool]] = []

    def follower(tx: Any, moved: Moved) -> None:
        seen = tx.execute(select(tasks.c.status).where(tasks.c.id == moved.task["id"])).scalar_one()
        assert seen == moved.status
        heard.append((moved.move, moved.source, moved.status, moved.closes))

    ledger.followers.append(follower)
    create(db, ledger, "T-1")
    (row,) = claim(db, ledger)
    settle(db, ledger, lease_of(row), Move.FAIL)
    with db.write() as tx:
        ledger.move(tx, ledger.lock(tx, row["id"]), Move.REQUEUE, OPERATOR)
        ledger.cancel(tx, ledger.lock(tx, row["id"]), OPERATOR, None)
    assert heard == [
        ("create", None, "pending", False),
        ("claim", "pending", "running", False),
        ("fail", "running", "failed", True),
        ("requeue", "failed", "pending", False),
        ("cancel", "pending", "cancelled", True),
    ]


def test_a_follower_of_some_moves_hears_of_no_others(db: Database, ledger: Ledger) -> None:
    heard: list[str] = []
    ledger.followers.append(When([Move.CLAIM, Move.FAIL], lambda _, moved: heard.append(moved.move)))
    create(db, ledger, "T-1")
    create(db, ledger, "T-2")
    rows = claim(db, ledger)
    with db.write() as tx:
        ends = [Settlement(lease_of(row), move) for row, move in zip(rows, (Move.SUCCEED, Move.FAIL), strict=True)]
        assert len(ledger.settle_many(tx, ends, WORKER)) == 2
    assert heard == ["claim", "claim", "fail"]


def test_the_result_is_written_whether_or_not_it_is_what_the_attempt_brought_forth(
    db: Database, ledger: Ledger
) -> None:
    for number in range(4):
        create(db, ledger, f"T-{number}")
    rows = claim(db, ledger)
    outputs = [{"n": row["id"]} for row in rows]
    results = [outputs[0], {"other": 1}, outputs[2], None]
    ends = [
        Settlement(lease_of(row), Move.SUCCEED, data={"result": result}, attempt={"output": output})
        for row, result, output in zip(rows, results, outputs, strict=True)
    ]
    with db.write() as tx:
        assert len(ledger.settle_many(tx, ends, WORKER)) == 4
    with db.read() as connection:
        kept = dict(connection.execute(select(task_data.c.task, task_data.c.result)).all())
        brought = dict(connection.execute(select(attempts.c.task, attempts.c.output)).all())
    assert [kept[row["id"]] for row in rows] == results
    assert [brought[row["id"]] for row in rows] == outputs


def test_an_internal_id_is_never_given_twice(db: Database, ledger: Ledger) -> None:
    """Outside systems know an attempt by it."""
    first = create(db, ledger, "T-1")
    with db.write() as tx:
        tx.execute(tasks.delete())
    assert create(db, ledger, "T-2") > first
