"""What an outside worker is given, and what it is not; on both databases."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import update

from board.db.clock import now
from board.queue import live
from board.tasks.intake import Problem
from board.tasks.models import tasks
from tests.rig.working import OpenWorking, WorkingBoard
from tests.worker.claims.outside import complete, lose_lease, one, take


def test_a_claim_is_an_attempt_of_the_key_and_its_worker(board: WorkingBoard) -> None:
    board.submit(payload={"n": 1})
    [handed_out] = take(board, lease=120)
    task = board.task()
    assert (task["status"], task["lease_owner"], task["lease_token"]) == ("running", "key:n8n/flow-1", 1)
    assert (handed_out.task["task_id"], handed_out.inputs) == ("T-1", {"n": 1})
    assert (handed_out.instruction, handed_out.former_output) == (None, None)
    assert 119 < (task["lease_until"] - task["updated_at"]).total_seconds() < 121
    started = board.events()[-1]
    assert (started["kind"], started["actor_kind"], started["actor_name"], started["channel"]) == (
        "started",
        "key",
        "n8n/flow-1",
        "api",
    )
    assert board.attempts()[0]["worker"] == "key:n8n/flow-1"
    assert take(board) == []


def test_the_boards_own_workers_never_take_outside_work_and_outside_workers_no_other(working: OpenWorking) -> None:
    board = working()
    board.type(use="outside")
    board.type("own", use="echo")
    board.submit("T-1")
    board.submit("T-2", type="own", run_after="2100-01-01T00:00:00Z")
    board.submit("T-3", type="own")
    board.wait("T-3", "done")
    assert board.task("T-1")["status"] == "pending"
    with board.board.db.write() as tx:
        tx.execute(update(tasks).where(tasks.c.task_id == "T-2").values(ready_at=now(-1), lane=0))
    assert [it.task["task_id"] for it in take(board, 5)] == ["T-1"]
    board.wait("T-2", "done")


def test_twenty_claimers_at_once_share_no_task_and_leave_none(board: WorkingBoard) -> None:
    names = [f"T-{number}" for number in range(50)]
    for number, name in enumerate(names):
        board.submit(name, priority=f"P{number % 4}")
    together = threading.Barrier(20)

    def claim(number: int) -> list[str]:
        mine: list[str] = []
        together.wait()
        while found := take(board, 2, worker=f"w{number}"):
            mine += [it.task["task_id"] for it in found]
        return mine

    with ThreadPoolExecutor(20) as threads:
        taken = list(itertools.chain(*threads.map(claim, range(20))))
    assert len(taken) == len(set(taken)), "a task was handed out twice"
    taken += [it.task["task_id"] for it in take(board, 50)]  # what somebody else was just looking at
    assert sorted(taken) == sorted(names)
    assert all(board.task(name)["lease_token"] == 1 for name in names)


def test_lanes_have_their_shares_and_in_a_lane_the_oldest_comes_first(board: WorkingBoard) -> None:
    for name in ("c1", "a1", "b1", "a2", "b2", "a3", "a4"):
        board.submit(name, priority=f"P{'abc'.index(name[0])}")
    order = [take(board)[0].task["task_id"] for _ in range(7)]
    # A burst that fits into a round of 16 : 5 : 2 : 1 runs in the order of its priorities.
    assert order == ["a1", "a2", "a3", "a4", "b1", "b2", "c1"]


def test_only_the_types_and_lanes_asked_for(board: WorkingBoard) -> None:
    board.type("other", use="outside")
    board.submit("T-1", priority="P1")
    board.submit("T-2", type="other", priority="P2")
    assert take(board, 5, types=["trial"], lanes=[0, 2, 3]) == []
    assert [it.task["task_id"] for it in take(board, 5, types=["other", "trial"], lanes=[2])] == ["T-2"]
    assert [it.task["task_id"] for it in take(board, 5, types=["trial"], lanes=[1])] == ["T-1"]


def test_a_type_that_does_not_exist_is_named(board: WorkingBoard) -> None:
    with pytest.raises(Problem, match="no-such") as refused:
        take(board, types=["trial", "no-such"])
    assert refused.value.field == "types[1]"


def test_what_is_paused_is_not_handed_out(board: WorkingBoard) -> None:
    board.type("other", use="outside")
    board.submit("T-1")
    board.submit("T-2", type="other")

    def rules(**given: Any) -> None:
        with board.board.db.write() as tx:
            live.change(tx, "key:test", lambda was: was.model_copy(update=given))

    rules(paused=True)
    assert take(board, 5) == []
    rules(paused=False, paused_types=["trial"])
    assert [it.task["task_id"] for it in take(board, 5)] == ["T-2"]
    rules(paused_types=[])
    assert [it.task["task_id"] for it in take(board, 5)] == ["T-1"]


def test_a_task_on_its_last_life_is_handed_out_alone(board: WorkingBoard) -> None:
    board.submit("T-1", priority="P3")
    for _ in range(2):
        one(board)
        lose_lease(board)
    assert board.task("T-1")["suspect"]
    for name in ("T-2", "T-3"):
        board.submit(name, priority="P0")
    assert [it.task["task_id"] for it in take(board, 10)] == ["T-1"]
    assert [it.task["task_id"] for it in take(board, 10)] == ["T-2", "T-3"]


def test_templates_fill_the_inputs_and_a_broken_one_fails_the_task(board: WorkingBoard) -> None:
    board.type(use="outside", handler={"inputs": {"text": "{{ payload.text }}", "half": "{{ 10 // payload.n }}"}})
    board.submit("T-1", payload={"text": "hi", "n": 0})
    board.submit("T-2", payload={"text": "hi", "n": 5})
    assert [(it.task["task_id"], it.inputs) for it in take(board, 5)] == [("T-2", {"text": "hi", "half": 2})]
    task = board.task("T-1")
    assert (task["status"], task["error_cause"], task["retry_count"]) == ("failed", "precondition", 0)


def test_a_later_round_brings_the_reviewers_instruction(board: WorkingBoard) -> None:
    board.type(use="outside", review={"when": "always"})
    board.submit()
    complete(board, one(board), {"text": "draft"})
    board.decide("T-1", "revise", instruction="Shorter.")
    [again] = take(board)
    assert (again.task["round"], again.instruction, again.former_output) == (2, "Shorter.", {"text": "draft"})
