"""Results, failures and releases of outside workers, and what follows; on both databases."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from board.ports import Job, Outcome, Success
from board.tasks.bodies import TaskIn
from board.tasks.intake import Problem
from board.worker.claims import ClaimLost
from tests.rig.receiver import Receiver
from tests.rig.working import CALLER, OpenWorking, Probe, WorkingBoard
from tests.worker.claims.outside import CALLS, complete, fail, one, take


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
