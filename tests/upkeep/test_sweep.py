"""What time alone brings about, on both databases; the workers here have gone silent on purpose."""

import threading
from typing import Any

import pytest
from sqlalchemy import RowMapping, update

from board.catalogue.models import task_types
from board.effects import operations as ledger_of_effects
from board.effects.operations import Wanted
from board.tasks.ledger import Lease
from board.tasks.models import tasks
from board.upkeep import sweep
from tests.heart import claim_lane
from tests.rig.working import OpenWorking, WorkingBoard

LEASE = 60.0


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    board = working(start=False)
    board.type("trial", use="echo", max_crashes=2)
    return board


def claimed(board: WorkingBoard, limit: int = 1) -> list[RowMapping]:
    with board.board.db.write() as tx:
        return claim_lane(tx, board.board.ledger, lane=2, limit=limit, worker="gone-1", lease=LEASE)


def swept(board: WorkingBoard) -> int:
    return sweep.rescue_leases(board.board.db, board.board.ledger, board.board.catalogue)


def announce(board: WorkingBoard, row: RowMapping) -> None:
    wanted = Wanted("print:1", "probe.call", "the printer", b"x", b"x", None, fixed=False, resend=False)
    with board.board.db.write() as tx:
        ledger_of_effects.send(tx, row, Lease(row["id"], row["lease_token"]), wanted)


def test_a_lost_lease_brings_the_task_back_then_gives_it_up(board: WorkingBoard) -> None:
    board.submit()
    claimed(board)
    assert swept(board) == 0  # it still holds
    board.at(LEASE + 1)
    assert swept(board) == 1
    task = board.task()
    assert (task["status"], task["crash_count"], task["retry_count"], task["suspect"]) == ("retrying", 1, 0, True)
    assert (task["lease_owner"], task["lease_until"]) == (None, None)
    [attempt] = board.attempts()
    assert (attempt["outcome"], attempt["error_cause"]) == ("lease_lost", "crash")
    with board.board.db.write() as tx:
        assert claim_lane(tx, board.board.ledger, lane=2, limit=1, worker="gone-2", lease=LEASE, suspects=True)
    board.at(2 * LEASE + 2)
    assert swept(board) == 1
    task = board.task()
    assert (task["status"], task["crash_count"], task["error_cause"]) == ("failed", 2, "crash")
    assert "worker died 2 times" in task["last_error"]
    assert board.kinds() == ["created", "started", "lease_lost", "started", "worker_died"]
    assert swept(board) == 0


def test_a_heartbeat_keeps_the_lease(board: WorkingBoard) -> None:
    board.submit()
    [row] = claimed(board)
    board.at(LEASE - 1)
    with board.board.db.write() as tx:
        lease = Lease(row["id"], row["lease_token"])
        assert board.board.ledger.renew(tx, "gone-1", [lease], LEASE)
    board.at(LEASE + 30)
    assert swept(board) == 0
    board.at(2 * LEASE)
    assert swept(board) == 1


def test_a_cancelled_task_of_a_silent_worker_stops(board: WorkingBoard) -> None:
    board.submit()
    [row] = claimed(board)
    announce(board, row)
    board.cancel("T-1")
    assert board.task()["status"] == "running"
    board.at(LEASE + 1)
    assert swept(board) == 1
    task = board.task()
    assert (task["status"], task["cancel_requested"], task["crash_count"]) == ("cancelled", False, 0)
    assert board.operations()[0]["status"] == "unknown"  # people see it, and a requeue asks about it first


def test_a_call_that_was_under_way_is_left_to_the_next_claim_and_in_the_end_to_a_person(board: WorkingBoard) -> None:
    board.submit()
    [row] = claimed(board)
    announce(board, row)
    board.at(LEASE + 1)
    assert swept(board) == 1
    assert board.task()["status"] == "retrying"
    assert board.operations()[0]["status"] == "sent"
    with board.board.db.write() as tx:
        claim_lane(tx, board.board.ledger, lane=2, limit=1, worker="gone-2", lease=LEASE, suspects=True)
    board.at(2 * LEASE + 2)
    assert swept(board) == 1
    [review], [operation] = board.reviews(), board.operations()
    assert board.task()["status"] == "needs_review"
    assert (review["reason"], review["operation"], operation["status"]) == (
        "unknown_outcome",
        operation["id"],
        "unknown",
    )


def at_once(work: Any, times: int = 3) -> list[int]:
    start = threading.Barrier(times)
    results: list[int] = []

    def run() -> None:
        start.wait()
        results.append(work())

    threads = [threading.Thread(target=run) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_many_lost_leases_in_one_sweep_by_several_sweepers(board: WorkingBoard) -> None:
    for number in range(250):
        board.submit(f"T-{number}")
    assert len(claimed(board, limit=300)) == 250
    board.at(LEASE + 1)
    assert sum(at_once(lambda: swept(board))) == 250
    assert {board.task(f"T-{number}")["crash_count"] for number in range(250)} == {1}


def test_one_row_that_cannot_be_read_holds_up_no_other(board: WorkingBoard) -> None:
    board.type("odd", use="echo")
    board.submit("T-odd", type="odd")
    board.submit("T-1")
    claimed(board, limit=2)
    with board.board.db.write() as tx:  # such as a type that an older version of the board had allowed
        tx.execute(update(task_types).where(task_types.c.name == "odd").values(spec={"name": "odd"}))
    board.board.catalogue._loaded.clear()
    board.at(LEASE + 1)
    assert swept(board) == 1
    assert (board.task("T-1")["status"], board.task("T-odd")["status"]) == ("retrying", "running")


def test_grace_times_end_once_and_only_where_no_action_is_left(board: WorkingBoard) -> None:
    for number in range(130):
        board.submit(f"T-{number}")
    with board.board.db.write() as tx:
        tx.execute(update(tasks).values(phase="act", ready_at=tasks.c.created_at))
        tx.execute(update(tasks).where(tasks.c.task_id == "T-0").values(has_action=True))

    def finish() -> int:
        return sweep.finish_grace(board.board.db, board.board.ledger)

    assert sum(at_once(finish)) == 129
    assert board.task("T-0")["status"] == "pending"
    assert {board.task(f"T-{number}")["status"] for number in range(1, 130)} == {"done"}
    assert board.kinds("T-1") == ["created", "done"]


def test_a_grace_time_that_is_not_over_goes_on(board: WorkingBoard) -> None:
    board.submit()
    with board.board.db.write() as tx:
        tx.execute(update(tasks).values(phase="act", ready_at=board.task()["created_at"].replace(year=2099)))
    assert sweep.finish_grace(board.board.db, board.board.ledger) == 0
    assert board.task()["status"] == "pending"
