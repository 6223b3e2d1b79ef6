"""Limits of types, keys and connections, claim by claim on a wired board: on both databases, with and without Redis."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import insert, update

from board.access.rights import key_actor
from board.db.clock import now
from board.effects.models import operations
from board.queue.redis_queue import RedisQueue
from board.queue.wanted import Scope
from board.tasks.edit import TaskEdit, apply
from board.tasks.models import tasks
from board.tasks.states import Move, Pool
from board.worker.handing_out import WorkWanted
from tests.heart import CALLER, OPERATOR
from tests.queue.conformance.limiting import claim, end, held, limited, look_again
from tests.queue.conftest import asked_of_the_ledger, settle
from tests.rig.working import OpenWorking, WorkingBoard


@pytest.fixture
def board(open_limited: OpenWorking) -> WorkingBoard:
    return open_limited(start=False)


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
