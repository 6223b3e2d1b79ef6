"""Limits of types, keys and connections, claim by claim on a wired board: on both databases, with and without Redis."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import insert, update

from board.access.rights import key_actor
from board.db.clock import now, read_now
from board.effects.models import operations
from board.queue.redis_queue import RedisQueue
from board.queue.wanted import Scope, Wanted
from board.tasks.claiming import Lease
from board.tasks.edit import TaskEdit, apply
from board.tasks.models import tasks
from board.tasks.states import Move, Pool
from board.upkeep import ageing
from board.worker.handing_out import WorkWanted
from tests.heart import CALLER, OPERATOR, WORKER
from tests.queue.conftest import asked_of_the_ledger, settle
from tests.rig.working import OpenWorking, WorkingBoard

Claim = Callable[..., list[str]]


@pytest.fixture
def board(open_limited: OpenWorking) -> WorkingBoard:
    return open_limited(start=False)


def claim(board: WorkingBoard, slots: int = 10, worker: str = "w1", **scope: Any) -> list[str]:
    """The ids of what a claimer with so many free slots takes, who asks until there is nothing, as the consumer does.
    What a limit lets in reaches Redis only behind the claim that has let it in, and then wakes who has asked."""
    taken: list[str] = []

    def ask() -> bool:
        settle(board)
        free = slots - len(taken)
        wanted = Wanted(scope=Scope(**scope), slots=free, rest=free, worker=worker, lease=60)
        found = [row["task_id"] for row in board.board.queue.claim(wanted).rows]
        taken.extend(found)
        return bool(found)

    while len(taken) < slots and (ask() or ask()):
        pass
    return taken


def look_again(board: WorkingBoard) -> None:
    """With the next claim all limits are looked at, as once a second: the clock of a test jumps."""
    board.board.gate._looks.clear()


def end(board: WorkingBoard, *names: str, move: Move = Move.SUCCEED, **changes: Any) -> None:
    for name in names:
        row = board.task(name)
        with board.board.db.write() as tx:
            lease = Lease(row["id"], row["lease_token"])
            assert board.board.ledger.settle(tx, lease, move, WORKER, changes=changes, details={"reason": "sample"})


def limited(board: WorkingBoard, number: int = 6, name: str = "trial", use: str = "echo", **limits: Any) -> list[str]:
    """A type with limits and so many tasks of it, T-0 first."""
    board.type(name, use=use, limits=limits)
    return [board.submit(f"T-{n}", type=name) for n in range(number)]


def held(board: WorkingBoard, *names: str) -> list[str | None]:
    return [board.task(name)["held_by"] for name in names]


# -- how many at once --------------------------------------------------------------------------------------------------


def test_of_a_type_only_so_many_run_and_the_next_follow_in_their_order(board: WorkingBoard) -> None:
    limited(board, concurrency=2)
    assert claim(board) == ["T-0", "T-1"]
    assert held(board, "T-2", "T-5") == ["type:trial", "type:trial"]
    assert claim(board) == []
    end(board, "T-1")
    assert claim(board) == ["T-2"]
    end(board, "T-0", "T-2")
    assert claim(board) == ["T-3", "T-4"]
    assert claim(board) == []
    if isinstance(board.board.queue, RedisQueue):
        assert asked_of_the_ledger(board) == 0, "all that came from Redis and the limits on it"


def test_work_behind_a_limited_type_goes_on(board: WorkingBoard) -> None:
    limited(board, concurrency=1)
    board.type("free", use="echo")
    board.submit("F-1", type="free")
    board.submit("F-2", type="free")
    assert claim(board, 3) == ["T-0", "F-1", "F-2"]


def test_a_handed_back_or_failed_or_crashed_task_gives_its_place_up(board: WorkingBoard) -> None:
    limited(board, concurrency=1)
    assert claim(board) == ["T-0"]
    end(board, "T-0", move=Move.FAIL)
    assert claim(board) == ["T-1"]
    end(board, "T-1", move=Move.RETRY, ready_at=datetime(2100, 1, 1, tzinfo=UTC))
    assert claim(board) == ["T-2"]
    end(board, "T-2", move=Move.ASK)
    assert claim(board) == ["T-3"]
    with board.board.db.write() as tx:
        tx.execute(update(tasks).where(tasks.c.task_id == "T-3").values(lease_until=now(-1)))
    from board.upkeep import sweep

    assert sweep.rescue_leases(board.board.db, board.board.ledger, board.board.catalogue) == 1
    assert claim(board) == ["T-4"]
    end(board, "T-4")
    assert claim(board) == ["T-5"]
    end(board, "T-5")
    assert claim(board) == ["T-3"]


def test_who_comes_later_does_not_overtake_what_is_held(board: WorkingBoard) -> None:
    limited(board, 3, concurrency=1)
    assert claim(board) == ["T-0"]
    board.submit("T-9", priority="P2")
    board.submit("U-1", priority="P0")
    end(board, "T-0")
    board.board.gate._noted.clear()  # as if it had ended in another process, which has not told
    taken = claim(board) or claim(board)
    assert taken == ["U-1"]
    end(board, "U-1")
    assert claim(board) == ["T-1"]
    end(board, "T-1")
    assert claim(board) == ["T-2"]
    end(board, "T-2")
    assert claim(board) == ["T-9"]


def test_a_connection_is_one_limit_for_all_types_and_both_phases(board: WorkingBoard) -> None:
    hook = {"name": "hook", "kind": "webhook", "url": "https://example.org/", "limits": {"concurrency": 1}}
    board.apply(connections=[hook])
    action = {"use": "webhook", "connection": "hook"}
    for name in ("one", "two"):
        board.type(name, use="echo", action=action)
        board.submit(f"T-{name}", type=name)
    assert claim(board) == ["T-one", "T-two"]  # their work uses no connection
    end(board, "T-one", "T-two", move=Move.PROCEED, has_action=True, ready_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert claim(board) == ["T-one"]
    assert held(board, "T-two") == ["connection:hook"]
    end(board, "T-one")
    assert claim(board) == ["T-two"]


# -- keys --------------------------------------------------------------------------------------------------------------


def keyed(board: WorkingBoard, *phones: str | None, **limits: Any) -> list[str]:
    board.type(use="echo", limits={"concurrency_key": "{{ payload.phone }}", **limits})
    for number, phone in enumerate(phones):
        board.submit(f"T-{number}", payload={} if phone is None else {"phone": phone})
    return [f"T-{number}" for number in range(len(phones))]


def test_of_a_key_one_at_a_time_and_in_order(board: WorkingBoard) -> None:
    keyed(board, "1", "1", "2", "1", "2", "3")
    assert claim(board) == ["T-0", "T-2", "T-5"]
    end(board, "T-2")
    assert claim(board) == ["T-4"]
    end(board, "T-0")
    assert claim(board) == ["T-1"]
    end(board, "T-1")
    assert claim(board) == ["T-3"]


def test_with_a_key_concurrency_holds_for_each_key(board: WorkingBoard) -> None:
    keyed(board, *["1"] * 4, *["2"] * 4, concurrency=3)
    assert claim(board) == ["T-0", "T-1", "T-2", "T-4", "T-5", "T-6"]


def test_without_a_value_no_limit_of_the_key_holds(board: WorkingBoard) -> None:
    keyed(board, None, "", None, " ", "1", "1")
    assert claim(board) == ["T-0", "T-1", "T-2", "T-3", "T-4"]


def test_a_key_holds_for_the_action_too(board: WorkingBoard) -> None:
    hook = {"name": "hook", "kind": "webhook", "url": "https://example.org/"}
    board.apply(connections=[hook])
    action = {"use": "webhook", "connection": "hook"}
    board.type(use="echo", action=action, limits={"concurrency_key": "{{ payload.k }}"})
    board.submit("T-0", payload={"k": 1})
    assert claim(board) == ["T-0"]
    end(board, "T-0", move=Move.PROCEED, has_action=True, ready_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert claim(board) == ["T-0"]
    board.submit("T-1", payload={"k": 1})
    assert claim(board) == []
    end(board, "T-0")
    assert claim(board) == ["T-1"]


def test_a_corrected_payload_is_under_its_new_key(board: WorkingBoard) -> None:
    keyed(board, "1", "1", "1")
    assert claim(board) == ["T-0"]
    row = board.task("T-2")
    assert row["held_by"] == board.task("T-1")["held_by"] is not None
    with board.board.db.write() as tx:
        edit = TaskEdit(version=row["version"], payload={"phone": "2"})
        apply(
            tx, board.board.ledger, board.board.catalogue, board.board.files, lambda *_: None, row["id"], edit, OPERATOR
        )
    assert claim(board) == ["T-2"]
    changed = board.events("T-2")[-2]["data"]
    assert set(changed) == {"payload"}


def test_a_thousand_keys_with_a_thousand_heads(board: WorkingBoard) -> None:
    """Each key gives one, whoever asks; the rest is held, and comes key by key."""
    board.type(use="echo", limits={"concurrency_key": "{{ payload.phone }}"})
    from board.tasks.bodies import TaskIn

    bodies = [TaskIn(type="trial", task_id=f"T-{n}", payload={"phone": n % 1000}) for n in range(3000)]
    for begin in range(0, 3000, 500):
        some = bodies[begin : begin + 500]
        with board.board.db.write() as tx:
            board.board.intake.store(tx, [(it, board.board.intake.prepare(tx, it, CALLER)) for it in some], CALLER)
    taken: list[str] = []
    while len(taken) < 1000:
        found = claim(board, 100)
        assert found
        taken += found
    assert taken == [f"T-{n}" for n in range(1000)]
    assert claim(board, 100) == []
    end(board, "T-7", "T-500")
    assert claim(board, 100) == ["T-1007", "T-1500"]
    end(board, "T-1007")
    assert claim(board, 100) == ["T-2007"]


# -- rate and day ------------------------------------------------------------------------------------------------------


def test_a_rate_is_spread_over_its_time(board: WorkingBoard) -> None:
    limited(board, 20, rate="6/h")
    assert claim(board) == ["T-0"]
    end(board, "T-0")
    assert claim(board) == []
    for number in range(1, 5):
        board.at(600 * number - 60)
        look_again(board)
        assert claim(board) == []
        board.at(600 * number + 1)
        look_again(board)
        assert claim(board) == [f"T-{number}"]


def test_of_a_big_rate_a_twentieth_starts_at_once(board: WorkingBoard) -> None:
    limited(board, 20, rate="100/h")
    assert claim(board, 20) == ["T-0", "T-1", "T-2", "T-3", "T-4"]
    board.at(3600)
    look_again(board)
    assert claim(board, 20) == ["T-5", "T-6", "T-7", "T-8", "T-9"]


def test_a_claimer_is_told_to_come_again_when_only_time_opens_a_limit(board: WorkingBoard) -> None:
    limited(board, 3, rate="10/h")
    wanted = Wanted(scope=Scope(), slots=5, rest=5, worker="w", lease=60)
    assert len(board.board.queue.claim(wanted).rows) == 1
    again = board.board.queue.claim(wanted).again
    assert again is not None
    assert 0 < again <= 1


def test_a_day_ends_at_midnight_of_the_boards_zone(open_limited: OpenWorking) -> None:
    board = open_limited(start=False, timezone="Asia/Shanghai")
    with board.board.db.read() as connection:
        moment = read_now(connection)
    to_midnight = (datetime(2031, 3, 4, 16, tzinfo=UTC) - moment).total_seconds()  # 2031-03-05 00:00 in Shanghai
    board.at(to_midnight - 7200)
    limited(board, 8, per_day=2)
    assert claim(board) == ["T-0", "T-1"]
    end(board, "T-0", "T-1")
    board.at(to_midnight - 600)
    look_again(board)
    assert claim(board) == []
    board.at(to_midnight + 1)
    look_again(board)
    assert claim(board) == ["T-2", "T-3"]


def test_a_retry_is_a_start_and_so_counts(board: WorkingBoard) -> None:
    limited(board, 2, per_day=2)
    assert claim(board, 1) == ["T-0"]
    end(board, "T-0", move=Move.RETRY, ready_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert claim(board, 1) == ["T-0"]
    end(board, "T-0")
    assert claim(board, 1) == []


# -- small before big, and time ----------------------------------------------------------------------------------------


def sized(board: WorkingBoard, **sizes: int) -> None:
    for name, size in sizes.items():
        board.submit(name, payload={"text": "x" * size})


def test_of_the_same_moment_small_ones_come_before_big_ones(board: WorkingBoard) -> None:
    board.type(use="echo", limits={"order_by": "size"})
    board.type("usual", use="echo")
    sized(board, big=100_000, small=10, middle=5_000)
    assert claim(board) == ["small", "middle", "big"]


def test_a_big_one_waits_at_most_two_minutes_longer_than_it_would_by_age(board: WorkingBoard) -> None:
    board.type(use="echo", limits={"order_by": "size"})
    sized(board, big=1_000_000)
    board.at(100)
    sized(board, **{"small-100": 1})
    board.at(121)
    sized(board, **{"small-121": 1})
    assert claim(board) == ["small-100", "big", "small-121"]


def test_what_a_limit_holds_back_comes_by_size_as_well(board: WorkingBoard) -> None:
    board.type(use="echo", limits={"order_by": "size", "concurrency": 1})
    sized(board, first=1)
    assert claim(board) == ["first"]
    sized(board, big=100_000, small=10, middle=5_000)
    assert claim(board) == []
    order = []
    for _ in range(3):
        end(board, *order[-1:] or ["first"])
        order += claim(board)
    assert order == ["small", "middle", "big"]


def test_what_a_limit_holds_back_rises_and_comes_from_its_new_lane(board: WorkingBoard) -> None:
    board.type(use="echo", limits={"concurrency": 1})
    for name in ("first", "old"):
        board.submit(name, priority="P3")
    assert claim(board) == ["first"]
    assert held(board, "old") == ["type:trial"]
    board.at(301)
    board.submit("young", priority="P2")
    assert claim(board) == []
    assert ageing.age(board.board.db, board.board.ledger, 300) == 1
    assert board.kinds("old")[-1] == "aged"
    assert (board.task("old")["lane"], held(board, "old", "young")) == (2, ["type:trial"] * 2)
    end(board, "first")
    assert claim(board, only_lanes=[3]) == []
    assert claim(board, only_lanes=[2]) == ["old"]
    end(board, "old")
    assert claim(board) == ["young"]


# -- what bypasses, what changes ---------------------------------------------------------------------------------------


def left_open(board: WorkingBoard, name: str) -> None:
    """As if the attempt before had sent something and died."""
    row = board.task(name)
    with board.board.db.write() as tx:
        values = {"key": f"k-{name}", "task": row["id"], "phase": row["phase"], "lease_token": 1, "kind": "dify.run"}
        values |= {"target": "x", "request_hash": "", "status": "sent", "tries": 1, "created_at": now()}
        tx.execute(insert(operations).values(**values))


def test_recovery_is_claimed_whatever_the_limits_say(board: WorkingBoard) -> None:
    limited(board, 4, concurrency=1, per_day=1)
    assert claim(board) == ["T-0"]
    left_open(board, "T-0")
    end(board, "T-0", move=Move.HAND_BACK)
    with board.board.db.write() as tx:  # another has taken the only place, and the day is used up
        tx.execute(update(tasks).where(tasks.c.task_id == "T-1").values(status="running", lease_until=now(60)))
    assert claim(board) == ["T-0"]
    assert claim(board) == []
    assert held(board, "T-0", "T-2") == [None, "type:trial"]


def test_a_limit_that_is_raised_or_removed_lets_go(board: WorkingBoard) -> None:
    limited(board, concurrency=1)
    assert claim(board) == ["T-0"]
    board.type(use="echo", limits={"concurrency": 3})
    look_again(board)
    assert claim(board) == ["T-1", "T-2"]
    board.type(use="echo")
    look_again(board)
    assert claim(board) == ["T-3", "T-4", "T-5"]


def test_a_lowered_limit_counts_what_runs(board: WorkingBoard) -> None:
    limited(board, concurrency=4)
    assert claim(board) == ["T-0", "T-1", "T-2", "T-3"]
    board.type(use="echo", limits={"concurrency": 2})
    end(board, "T-0", "T-1")
    look_again(board)
    assert claim(board) == []
    end(board, "T-2")
    assert claim(board) == ["T-4"]


def test_a_limit_put_on_a_type_that_runs_counts_what_runs(board: WorkingBoard) -> None:
    limited(board)
    assert claim(board, 2) == ["T-0", "T-1"]
    board.type(use="echo", limits={"concurrency": 2})
    board.submit("T-9")  # of the new version: the limits are read again at once
    assert claim(board) == []
    end(board, "T-0")
    assert claim(board) == ["T-2"]


def test_a_held_task_is_cancelled_requeued_and_edited_like_any_other(board: WorkingBoard) -> None:
    limited(board, concurrency=1)
    assert claim(board) == ["T-0"]
    board.cancel("T-1")
    assert (board.task("T-1")["status"], held(board, "T-1")) == ("cancelled", [None])
    row = board.task("T-5")
    with board.board.db.write() as tx:
        edit = TaskEdit(version=row["version"], priority="P0")
        apply(
            tx, board.board.ledger, board.board.catalogue, board.board.files, lambda *_: None, row["id"], edit, OPERATOR
        )
    end(board, "T-0")
    assert claim(board) == ["T-5"]
    end(board, "T-5")
    assert claim(board) == ["T-2"]
    with board.board.db.write() as tx:
        from board.tasks.requeue import requeue

        requeue(tx, board.board.ledger, board.board.catalogue, board.task("T-1")["id"], OPERATOR)
    end(board, "T-2")
    assert [claim(board), end(board, "T-3"), claim(board), end(board, "T-4"), claim(board)][::2] == [
        ["T-3"],
        ["T-4"],
        ["T-1"],
    ]


def test_the_place_of_a_task_that_was_let_in_and_cancelled_is_given_to_the_next(board: WorkingBoard) -> None:
    limited(board, concurrency=1)
    assert claim(board) == ["T-0"]
    end(board, "T-0")
    board.board.gate.tend(Scope())
    assert (board.task("T-1")["let_in"], held(board, "T-1", "T-2")) == ("type:trial", [None, "type:trial"])
    board.board.gate.tend(Scope())
    look_again(board)
    board.board.gate.tend(Scope())
    assert held(board, "T-2") == ["type:trial"]  # what was let in holds the place
    board.cancel("T-1")
    look_again(board)
    assert claim(board) == ["T-2"]


def test_what_a_claimer_cannot_take_it_does_not_let_in(board: WorkingBoard) -> None:
    """Else paused work would take the places of work that could go on."""
    hook = {"name": "hook", "kind": "webhook", "url": "https://example.org/", "limits": {"concurrency": 1}}
    board.apply(connections=[hook])
    action = {"use": "webhook", "connection": "hook"}
    for name in ("one", "two", "three"):
        board.type(name, use="echo", action=action)
        board.submit(f"T-{name}", type=name)
    names = claim(board)
    end(board, *names, move=Move.PROCEED, has_action=True, ready_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert claim(board) == ["T-one"]
    end(board, "T-one")
    assert claim(board, without_types=["two"]) == ["T-three"]


def test_outside_workers_obey(board: WorkingBoard) -> None:
    limited(board, use="outside", concurrency=2)
    n8n = key_actor("n8n", ["work"])

    def ask() -> list[str]:
        settle(board)
        return [it.task["task_id"] for it in board.board.claims.take(n8n, WorkWanted("flow", 5))]

    assert ask() == ["T-0", "T-1"]
    assert ask() == []
    end(board, "T-0")
    assert (ask() or ask()) == ["T-2"]  # see `claim`
    assert claim(board, pool=Pool.BOARD) == []


def test_a_suspect_is_held_like_any_other(board: WorkingBoard) -> None:
    limited(board, 3, concurrency=1)
    assert claim(board) == ["T-0"]
    with board.board.db.write() as tx:
        tx.execute(update(tasks).where(tasks.c.task_id == "T-1").values(suspect=True))
    assert claim(board) == []
    assert held(board, "T-1") == ["type:trial"]
    end(board, "T-0")
    assert claim(board) == ["T-1"]
