"""Claims of outside workers, from handing out to the end, on both databases."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import update

from board.access.rights import key_actor
from board.db.clock import now, read_now
from board.ports import ErrorClass, Job, Outcome, Success
from board.queue import live
from board.tasks.bodies import TaskIn
from board.tasks.intake import Problem
from board.tasks.models import tasks
from board.upkeep import sweep
from board.worker.claims import Claimed, ClaimLost, NoSuchClaim, Settled
from board.worker.handing_out import HandedOut, WorkWanted
from tests.rig.receiver import Receiver
from tests.rig.working import CALLER, OpenWorking, Probe, WorkingBoard

N8N = key_actor("n8n", ["work"])
OTHER = key_actor("other", ["work"])


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    """A board without a consumer, with the type `trial` worked on from outside."""
    board = working(start=False)
    board.type(use="outside")
    return board


def take(board: WorkingBoard, limit: int = 1, **wanted: Any) -> list[HandedOut]:
    return board.board.claims.take(N8N, WorkWanted(wanted.pop("worker", "flow-1"), limit, **wanted))


def one(board: WorkingBoard, **wanted: Any) -> Claimed:
    """The one task that waits, claimed."""
    [handed_out] = take(board, **wanted)
    return Claimed(N8N, handed_out.claim_id)


def complete(
    board: WorkingBoard, claimed: Claimed, result: Any = "good", judgement: Any = None, review: Any = "auto"
) -> Settled:
    return board.board.claims.complete(claimed, result, judgement, review)


def fail(board: WorkingBoard, claimed: Claimed, error_class: str = "transient", **more: Any) -> Settled:
    given: dict[str, Any] = {"code": None, "retry_after": None} | more
    return board.board.claims.fail(claimed, "It broke.", ErrorClass(error_class), **given)


def lose_lease(board: WorkingBoard, task_id: str = "T-1") -> None:
    with board.board.db.write() as tx:
        tx.execute(update(tasks).where(tasks.c.task_id == task_id).values(lease_until=now(-1)))
    assert sweep.rescue_leases(board.board.db, board.board.ledger, board.board.catalogue) == 1


# -- handing out --------------------------------------------------------------------------------------------------


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


# -- while it runs ------------------------------------------------------------------------------------------------


def test_a_heartbeat_begins_the_lease_anew_as_long_as_before_or_as_asked(board: WorkingBoard) -> None:
    board.submit()
    claimed = one(board, lease=100)
    for lease, lasts, later in [(None, 100, 50), (300, 300, 100), (None, 300, 150)]:
        board.at(later)
        standing = board.board.claims.heartbeat(claimed, lease)
        assert standing.lease_until == board.task()["lease_until"]
        assert standing.lease_until > board.task()["updated_at"]
        with board.board.db.read() as connection:
            left = (standing.lease_until - read_now(connection)).total_seconds()
        assert lasts - 5 < left <= lasts
        assert (standing.claim_id, standing.lease_token, standing.cancel_requested) == (claimed.claim_id, 1, False)


def test_progress_is_kept_with_the_attempt_and_renews_nothing(board: WorkingBoard) -> None:
    board.submit()
    claimed = one(board)
    until = board.task()["lease_until"]
    board.at(10)
    assert board.board.claims.progress(claimed, {"percent": 40.0, "message": "第 1 页"}).lease_until == until
    board.board.claims.progress(claimed, {"text": "Dear"})
    board.board.claims.progress(claimed, {"text": " Li"})
    said = board.attempts()[0]["progress"]
    assert said.pop("at").endswith("Z")
    assert said == {"percent": 40.0, "message": "第 1 页", "text": " Li", "offset": 4}
    assert board.task()["lease_until"] == until


def test_silence_counts_as_a_crash_and_after_max_crashes_the_task_fails(board: WorkingBoard) -> None:
    board.type(use="outside", max_crashes=2)
    board.submit()
    one(board)
    lose_lease(board)
    task = board.task()
    assert (task["status"], task["crash_count"], task["retry_count"]) == ("retrying", 1, 0)
    one(board)
    lose_lease(board)
    task = board.task()
    assert (task["status"], task["crash_count"]) == ("failed", 2)
    assert task["last_error"].startswith("worker died 2 times")
    assert [it["outcome"] for it in board.attempts()] == ["lease_lost"] * 2
    assert "key:n8n/flow-1" in board.events()[2]["note"]


CALLS: dict[str, Callable[[WorkingBoard, Claimed], Any]] = {
    "heartbeat": lambda board, claimed: board.board.claims.heartbeat(claimed, None),
    "progress": lambda board, claimed: board.board.claims.progress(claimed, {"percent": 1}),
    "complete": complete,
    "fail": fail,
    "release": lambda board, claimed: board.board.claims.release(claimed),
}
ENDS = ("complete", "fail", "release")


@pytest.mark.parametrize("call", CALLS)
def test_after_the_lease_ran_out_nothing_of_the_claim_counts(board: WorkingBoard, call: str) -> None:
    board.submit()
    claimed = one(board)
    lose_lease(board)
    with pytest.raises(ClaimLost, match="the task is retrying") as lost:
        CALLS[call](board, claimed)
    assert lost.value.reason == "lease_expired"
    newer = one(board, worker="flow-2")
    with pytest.raises(ClaimLost, match="another worker has taken the task"):
        CALLS[call](board, claimed)
    task = board.task()
    assert (task["status"], task["lease_owner"], task["lease_token"]) == ("running", "key:n8n/flow-2", 2)
    assert board.kinds().count("stale_result") == (2 if call in ENDS else 0)
    complete(board, newer, "of the second")
    assert board.data()["result"] == "of the second"


def test_a_late_result_that_nobody_has_missed_yet_counts(board: WorkingBoard) -> None:
    board.submit()
    claimed = one(board, lease=1)
    board.at(100)
    complete(board, claimed)
    assert board.task()["status"] == "done"


@pytest.mark.parametrize("call", CALLS)
def test_for_another_key_the_claim_does_not_exist(board: WorkingBoard, call: str) -> None:
    board.submit()
    claimed = one(board)
    for foreign in (Claimed(OTHER, claimed.claim_id), Claimed(N8N, "999"), Claimed(N8N, "x"), Claimed(N8N, "9" * 30)):
        with pytest.raises(NoSuchClaim):
            CALLS[call](board, foreign)
    assert board.kinds() == ["created", "started"]


@pytest.mark.parametrize("call", CALLS)
def test_a_lease_token_that_is_sent_along_must_be_the_claims_own(board: WorkingBoard, call: str) -> None:
    board.submit()
    claimed = one(board)
    with pytest.raises(ClaimLost) as lost:
        CALLS[call](board, Claimed(N8N, claimed.claim_id, token=2))
    assert lost.value.reason == "other_token"
    assert board.task()["status"] == "running"
    CALLS[call](board, Claimed(N8N, claimed.claim_id, token=1))


# -- the end ------------------------------------------------------------------------------------------------------


def test_a_result_ends_the_task_as_the_boards_own_work_does(board: WorkingBoard) -> None:
    board.type(use="outside", handler={"judgement": {"summary": "text", "confidence": "sure"}})
    board.submit()
    settled = complete(board, one(board), {"text": "hi", "sure": 0.7})
    assert (settled.task["status"], settled.output, settled.repeated) == ("done", {"text": "hi", "sure": 0.7}, False)
    data = board.data()
    assert data["result"] == {"text": "hi", "sure": 0.7}
    assert (data["judgement"]["summary"], data["judgement"]["confidence"]) == ("hi", 0.7)
    assert board.kinds() == ["created", "started", "done"]
    assert (board.events()[-1]["actor_kind"], board.events()[-1]["actor_name"]) == ("key", "n8n/flow-1")
    [attempt] = board.attempts()
    assert (attempt["outcome"], attempt["output"]) == ("succeeded", {"text": "hi", "sure": 0.7})


RULES = [{"confidence_below": 0.8}]


@pytest.mark.parametrize(
    ("when", "wish", "confidence", "reason"),
    [
        ("never", "auto", None, None),
        ("never", "always", None, "policy"),
        ("never", "never", None, None),
        ("rules", "auto", 0.9, None),
        ("rules", "auto", 0.5, "low_confidence"),
        ("rules", "always", 0.9, "policy"),
        ("rules", "never", 0.5, None),
        ("always", "auto", 0.9, "policy"),
        ("always", "always", 0.9, "policy"),
        ("always", "never", 0.9, "policy"),
    ],
)
def test_what_the_worker_wishes_and_what_the_type_rules(
    board: WorkingBoard, when: str, wish: str, confidence: float | None, reason: str | None
) -> None:
    board.type(use="outside", review={"when": when, "rules": RULES})
    board.submit()
    complete(board, one(board), {"n": 1}, {"confidence": confidence, "summary": "s"}, wish)
    assert board.task()["status"] == ("done" if reason is None else "needs_review")
    assert [review["reason"] for review in board.reviews()] == ([] if reason is None else [reason])
    assert board.data()["judgement"]["summary"] == "s"


@pytest.mark.parametrize("wish", ["auto", "never"])
def test_an_output_of_another_shape_asks_a_person_whatever_was_wished(board: WorkingBoard, wish: str) -> None:
    board.type(use="outside", handler={"output_schema": {"type": "object", "required": ["label"]}})
    board.submit()
    complete(board, one(board), {"lable": 1}, review=wish)
    assert board.task()["status"] == "needs_review"
    assert board.reviews()[0]["reason"] == "invalid_output"


def test_the_same_result_again_is_answered_the_same_and_another_is_refused(board: WorkingBoard) -> None:
    board.submit()
    claimed = one(board)
    first = complete(board, claimed, {"a": 1, "b": [2]}, {"summary": "s"})
    again = complete(board, claimed, {"b": [2], "a": 1}, {"summary": "s"})
    assert (first.repeated, again.repeated, again.output) == (False, True, {"a": 1, "b": [2]})
    assert board.kinds() == ["created", "started", "done"]
    for other in ({"result": {"a": 2}}, {"result": {"a": 1, "b": [2]}, "review": "always"}):
        with pytest.raises(ClaimLost) as lost:
            complete(board, claimed, **other)
        assert lost.value.reason == "completed"
    for call in ("heartbeat", "progress", "fail", "release"):
        with pytest.raises(ClaimLost):
            CALLS[call](board, claimed)
    assert board.data()["result"] == {"a": 1, "b": [2]}
    assert board.task()["status"] == "done"


def test_a_repeat_is_known_even_when_the_task_went_on(board: WorkingBoard) -> None:
    board.type(use="outside", review={"when": "always"})
    board.submit()
    claimed = one(board)
    complete(board, claimed, "draft")
    board.decide("T-1", "revise", instruction="Again.")
    complete(board, one(board), "better")
    again = complete(board, claimed, "draft")
    assert (again.repeated, again.output, again.task["round"]) == (True, "draft", 2)
    assert board.data()["result"] == "better"


def test_one_result_sent_by_many_at_once_counts_once(board: WorkingBoard) -> None:
    board.submit()
    claimed = one(board)
    together = threading.Barrier(8)

    def send(number: int) -> str:
        together.wait()
        try:
            return "repeated" if complete(board, claimed, number % 2).repeated else "taken"
        except ClaimLost:
            return "lost"

    with ThreadPoolExecutor(8) as threads:
        answers = sorted(threads.map(send, range(8)))
    assert answers == ["lost"] * 4 + ["repeated"] * 3 + ["taken"]
    assert board.kinds().count("done") == 1
    assert len(board.attempts()) == 1


@pytest.mark.parametrize(
    ("error_class", "status", "cause", "retries"),
    [
        ("transient", "retrying", "unknown", 1),
        ("quota", "retrying", "rate_limit", 1),
        ("unknown", "retrying", "unknown", 1),
        ("permanent", "failed", "unknown", 0),
    ],
)
def test_a_failure_is_treated_by_its_class(
    board: WorkingBoard, error_class: str, status: str, cause: str, retries: int
) -> None:
    board.submit()
    claimed = one(board)
    for repeated in (False, True):
        settled = fail(board, claimed, error_class)
        assert (settled.task["status"], settled.repeated) == (status, repeated)
    task = board.task()
    assert (task["error_class"], task["error_cause"], task["last_error"], task["retry_count"]) == (
        error_class,
        cause,
        "It broke.",
        retries,
    )
    assert board.attempts()[0]["outcome"] == "failed"
    assert len(board.events()) == 3
    with pytest.raises(ClaimLost) as lost:
        fail(board, claimed, "permanent" if error_class != "permanent" else "transient")
    assert lost.value.reason == "failed"


def test_retries_end_with_the_budget_and_wait_as_long_as_was_asked(board: WorkingBoard) -> None:
    board.type(use="outside", retry={"max": 1})
    board.submit()
    fail(board, one(board), "quota", retry_after=500)
    assert 499 < (board.task()["ready_at"] - board.task()["updated_at"]).total_seconds() < 501
    assert take(board) == []
    board.at(501)
    fail(board, one(board))
    assert board.task()["status"] == "failed"


def test_the_types_own_rules_class_a_failure_by_its_code(board: WorkingBoard) -> None:
    rule = {"when": {"code": "no_such_customer"}, "class": "permanent"}
    board.type(use="outside", retry={"rules": [rule], "on_permanent": "needs_review"})
    board.submit()
    fail(board, one(board), code="no_such_customer")
    assert board.task()["status"] == "needs_review"
    assert board.reviews()[0]["reason"] == "permanent_failure"
    assert board.attempts()[0]["rule"] == "retry.rules[0]"


def test_a_released_task_waits_again_and_no_retry_is_spent(board: WorkingBoard) -> None:
    board.submit()
    claimed = one(board)
    for repeated in (False, True):
        settled = board.board.claims.release(claimed)
        assert (settled.task["status"], settled.repeated) == ("pending", repeated)
    assert board.kinds() == ["created", "started", "handed_back"]
    task = board.task()
    assert (task["retry_count"], task["crash_count"], task["lease_owner"]) == (0, 0, None)
    with pytest.raises(ClaimLost) as lost:
        complete(board, claimed)
    assert lost.value.reason == "released"
    complete(board, one(board))
    assert board.task()["status"] == "done"
    assert board.board.claims.release(claimed).repeated  # the old claim knows its own end, and touches nothing


# -- cancelled meanwhile --------------------------------------------------------------------------------------------


def test_who_works_is_told_of_the_cancellation_and_a_result_is_refused(board: WorkingBoard) -> None:
    board.submit()
    claimed = one(board)
    board.cancel("T-1")
    assert board.board.claims.heartbeat(claimed, None).cancel_requested
    assert board.board.claims.progress(claimed, {"percent": 90}).cancel_requested
    assert board.task()["status"] == "running"
    for _ in range(2):
        with pytest.raises(ClaimLost) as lost:
            complete(board, claimed)
        assert lost.value.reason == "cancelled"
    assert board.task()["status"] == "cancelled"
    assert board.data()["result"] is None
    assert board.attempts()[0]["outcome"] == "cancelled"


@pytest.mark.parametrize("call", ["fail", "release"])
def test_who_stops_because_of_the_cancellation_is_told_that_it_is_cancelled(board: WorkingBoard, call: str) -> None:
    board.submit()
    claimed = one(board)
    board.cancel("T-1")
    for repeated in (False, True):
        settled = CALLS[call](board, claimed)
        assert (settled.task["status"], settled.repeated) == ("cancelled", repeated)
    assert board.kinds() == ["created", "started", "cancel_requested", "cancelled"]


def test_a_cancelled_task_of_a_silent_worker_is_cancelled_by_the_sweep(board: WorkingBoard) -> None:
    board.submit()
    claimed = one(board)
    board.cancel("T-1")
    lose_lease(board)
    assert board.task()["status"] == "cancelled"
    with pytest.raises(ClaimLost):
        complete(board, claimed)


# -- what follows -------------------------------------------------------------------------------------------------


def test_the_action_after_outside_work_is_done_by_the_boards_own_worker(
    working: OpenWorking, receiver: Receiver
) -> None:
    board = working()
    board.apply(connections=[{"name": "hook", "kind": "webhook", "url": f"{receiver.url}/publish"}])
    board.type(use="outside", action={"use": "webhook", "connection": "hook"}, review={"when": "always", "grace": "0s"})
    board.submit()
    complete(board, one(board), {"text": "hi"})
    assert take(board) == []
    board.decide("T-1", "approve")
    board.wait("T-1", "done")
    [request] = receiver.wait_for(1)
    assert b'"text":"hi"' in request.body.replace(b" ", b"")
    first, second = board.attempts()
    assert (first["worker"], first["phase"], second["phase"]) == ("key:n8n/flow-1", "work", "act")
    assert second["worker"] == board.board.consumer.name  # type: ignore[union-attr]


def test_an_outside_type_has_no_work_for_the_boards_own_workers(working: OpenWorking) -> None:
    """A task that was put in when its type was the board's own keeps to that version; a new one waits outside."""

    async def good(job: Job) -> Outcome:
        return Success(result="inside")

    board = working(Probe(good), start=False)
    board.type()
    board.submit("T-1")
    board.type(use="outside")
    board.submit("T-2")
    assert [it.task["task_id"] for it in take(board, 5)] == ["T-2"]
    board.start()
    board.wait("T-1", "done")
    assert board.data("T-1")["result"] == "inside"


def test_side_effects_are_assumed_so_an_id_is_required(board: WorkingBoard) -> None:
    board.apply(types=[{"name": "careful", "handler": {"use": "outside"}}])
    board.apply(types=[{"name": "harmless", "handler": {"use": "outside", "side_effects": False}}])
    with board.board.db.write() as tx, pytest.raises(Problem, match="task_id"):
        board.board.intake.take(tx, TaskIn(type="careful"), CALLER)
    with board.board.db.write() as tx:
        assert board.board.intake.take(tx, TaskIn(type="harmless"), CALLER).created
