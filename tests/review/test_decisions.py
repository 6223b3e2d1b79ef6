"""Decisions: made once, for what was shown, by who may; answered alike when repeated, and undone in time."""

import json
from typing import Any

import pytest

from board.access.rights import Actor, key_actor, person_actor
from board.ports import Cause, ErrorClass, Failure, Job, Outcome, Success, UnknownOutcome
from board.review.decide import DecisionRefused, Verdict
from board.review.policy import NotEligible
from tests.review.deciding import ANNA, refused, reviewed
from tests.rig.receiver import Receiver
from tests.rig.working import LI, OpenWorking, Probe


def test_approve_without_grace_is_done_at_once(working: OpenWorking) -> None:
    board = working()
    reviewed(board)
    assert board.decide("T-1", "approve", reason="Good.") is False
    assert board.task()["status"] == "done"
    assert board.data()["result"] == {"text": "Guten Tag"}
    assert board.kinds()[-2:] == ["approved", "done"]
    [approved] = [event for event in board.events() if event["kind"] == "approved"]
    assert (approved["actor_kind"], approved["actor_name"], approved["channel"]) == ("key", "li", "api")
    [review] = board.reviews()
    assert (review["status"], review["verdict"], review["decider"]) == ("decided", "approve", "key:li")
    decision = board.data()["decision"]
    assert (decision["verdict"], decision["by"], decision["reason"]) == ("approve", "key:li", "Good.")


def test_approve_with_grace_waits_then_is_done(working: OpenWorking) -> None:
    board = working()
    reviewed(board, grace="60s")
    board.decide("T-1", "approve")
    task = board.task()
    assert (task["status"], task["phase"], task["has_action"]) == ("pending", "act", False)
    board.at(61)
    board.wait("T-1", "done")
    assert len(board.attempts()) == 1  # nobody has claimed it for that


def test_the_action_waits_for_the_grace_time(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    board.apply(connections=[{"name": "hook", "kind": "webhook", "url": receiver.url}])
    action = {"use": "webhook", "connection": "hook"}
    board.type("echo", use="echo", review={"when": "always", "grace": "60s"}, action=action)
    board.submit(type="echo")
    board.submit("T-2", type="echo")
    for name in ("T-1", "T-2"):
        board.wait(name, "needs_review")
        board.decide(name, "approve")
    board.undo("T-1")
    board.at(61)
    board.wait("T-2", "done")
    body = json.loads(receiver.requests[0].body)
    assert (body["task"]["task_id"], body["decision"]["verdict"]) == ("T-2", "approve")
    assert len(receiver.requests) == 1
    assert board.task("T-1")["status"] == "needs_review"


def test_revise_goes_back_with_the_instruction_and_the_former_output(working: OpenWorking) -> None:
    seen: list[dict[str, Any]] = []

    async def write(job: Job) -> Outcome:
        seen.append(job.inputs)
        return Success(result={"round": job.round})

    board = working(Probe(write))
    inputs = {"instruction": "{{ review.instruction }}", "former": "{{ review.former_output }}"}
    board.type(handler={"inputs": inputs}, review={"when": "always"})
    board.submit()
    board.wait("T-1", "needs_review")
    board.decide("T-1", "revise", instruction="更短一些")
    board.until(lambda: len(board.reviews()) == 2)
    task = board.wait("T-1", "needs_review")
    assert (task["round"], task["retry_count"]) == (2, 0)
    assert seen == [{"instruction": "", "former": ""}, {"instruction": "更短一些", "former": {"round": 1}}]
    first, second = board.reviews()
    assert (first["verdict"], second["status"], second["round"]) == ("revise", "open", 2)
    assert first["content_hash"] != second["content_hash"]
    assert [attempt["output"] for attempt in board.attempts()] == [{"round": 1}, {"round": 2}]


def test_revise_needs_an_instruction_and_has_its_rounds(working: OpenWorking) -> None:
    board = working()
    reviewed(board, max_rounds=2)
    for nothing in (None, "", " \n"):
        assert refused(board, "revise", instruction=nothing).code == "instruction_missing"
    board.decide("T-1", "revise", instruction="Again.")
    board.until(lambda: len(board.reviews()) == 2)
    board.wait("T-1", "needs_review")
    assert refused(board, "revise", instruction="And again.").code == "rounds_spent"
    board.decide("T-1", "approve")
    board.wait("T-1", "done")


def test_reject_cancels_with_its_reason(working: OpenWorking) -> None:
    board = working()
    reviewed(board)
    board.decide("T-1", "reject", reason="Not ours.", reason_class="policy")
    assert board.task()["status"] == "cancelled"
    assert board.events()[-1]["note"] == "Not ours."
    assert board.events()[-1]["data"]["reason_class"] == "policy"
    assert board.reviews()[0]["reason_class"] == "policy"


def test_a_repeat_is_answered_and_changes_nothing(working: OpenWorking) -> None:
    """B069, B073"""
    board = working()
    reviewed(board)
    version = board.reviews()[0]["version"]
    assert board.decide("T-1", "approve", version=version) is False
    before = board.kinds()
    assert board.decide("T-1", "approve", version=version) is True
    assert board.decide("T-1", "approve") is True
    assert board.kinds() == before


@pytest.mark.parametrize(
    ("verdict", "actor", "more"),
    [("approve", ANNA, {}), ("reject", LI, {}), ("revise", LI, {"instruction": "x"}), ("approve", LI, {"version": 99})],
)
def test_another_decision_comes_too_late(
    working: OpenWorking, verdict: str, actor: Actor, more: dict[str, Any]
) -> None:
    board = working()
    reviewed(board)
    board.decide("T-1", "approve")
    late = refused(board, verdict, actor, **more)
    assert late.code == "already_decided"
    assert "li has already approved this" in str(late)
    [detail] = late.details
    assert (detail["verdict"], detail["by"], detail["status"]) == ("approve", "key:li", "done")
    assert detail["at"].endswith("Z")


@pytest.mark.parametrize("scopes", [["submit"], ["read"], ["work"]])
def test_only_who_may_review_decides(working_sqlite: OpenWorking, scopes: list[str]) -> None:
    board = working_sqlite()
    reviewed(board)
    for actor in (key_actor("other", scopes), person_actor("v@example.org", "viewer")):
        with pytest.raises(NotEligible):
            board.decide("T-1", "approve", actor)
        with pytest.raises(NotEligible):
            board.undo("T-1", actor)
    assert board.task()["status"] == "needs_review"


def test_undo_brings_the_same_question_back(working: OpenWorking) -> None:
    board = working()
    reviewed(board, grace="60s")
    for verdict, status in (("approve", "pending"), ("reject", "cancelled")):
        before = board.reviews()[0]
        board.decide("T-1", verdict, version=before["version"])
        assert board.task()["status"] == status
        board.undo("T-1")
        task, [review] = board.task(), board.reviews()
        assert (task["status"], task["phase"], task["finished_at"]) == ("needs_review", "work", None)
        assert (review["status"], review["version"], review["content_hash"]) == (
            "open",
            before["version"] + 1,
            before["content_hash"],
        )
        assert board.data()["decision"] is None
        # A late repeat of what was undone must not count again.
        assert refused(board, verdict, version=before["version"]).code == "review_changed"
    board.decide("T-1", "approve")
    board.at(61)
    board.wait("T-1", "done")


@pytest.mark.parametrize("case", ["another actor", "too late", "no grace", "twice", "revise", "undecided"])
def test_what_cannot_be_undone(working: OpenWorking, case: str) -> None:
    board = working()
    reviewed(board, grace="0s" if case == "no grace" else "60s")
    if case == "revise":
        board.decide("T-1", "revise", instruction="x")
    elif case != "undecided":
        board.decide("T-1", "approve")
    if case == "twice":
        board.undo("T-1")
    if case == "too late":
        board.at(61)
    before = board.kinds()
    review = board.reviews()[0]["id"]
    with pytest.raises(DecisionRefused) as error, board.board.db.write() as tx:
        board.board.decisions.undo(tx, review, ANNA if case == "another actor" else LI, "api")
    assert error.value.code == "cannot_undo"
    assert "decision_undone" not in board.kinds()[len(before) :]


def test_a_cancelled_task_is_not_approved(working: OpenWorking) -> None:
    """B073"""
    board = working()
    reviewed(board)
    board.cancel("T-1")
    [review] = board.reviews()
    assert (review["status"], review["verdict"]) == ("closed", None)
    late = refused(board, "approve")
    assert late.code == "already_decided"
    assert late.details[0]["status"] == "cancelled"


async def _break(job: Job) -> Outcome:
    return Failure(ErrorClass.PERMANENT, Cause.BAD_OUTPUT, "It is broken.") if job.round == 1 else Success(result="ok")


def test_permanent_failure_offers_another_try_or_the_end(working: OpenWorking) -> None:
    board = working(Probe(_break))
    board.type(retry={"on_permanent": "needs_review"})
    for name in ("T-1", "T-2"):
        board.submit(name)
        board.wait(name, "needs_review")
        assert board.reviews(name)[0]["reason"] == "permanent_failure"
        assert refused(board, "approve", task_id=name).code == "verdict_not_offered"
    board.decide("T-1", "revise", instruction="Once more.")
    assert board.wait("T-1", "done")["last_error"] is None
    board.decide("T-2", "reject")
    assert board.task("T-2")["status"] == "cancelled"


def test_direct_work_goes_to_a_person(working: OpenWorking) -> None:
    board = working()
    board.type("ask", use="none", review={"grace": "0s"})
    board.submit(type="ask", payload={"question": "?"})
    board.wait("T-1", "needs_review")
    assert board.reviews()[0]["reason"] == "direct"
    assert refused(board, "revise", instruction="x").code == "verdict_not_offered"
    board.decide("T-1", "approve")
    assert board.task()["status"] == "done"


async def _lose(job: Job) -> Outcome:
    if job.phase == "work":
        await job.send(kind="probe.call", target="the printer", request=b"print")
        return UnknownOutcome("No answer.")
    return Success()


def test_an_unknown_outcome_of_the_work_that_happened_goes_on_to_the_action(working: OpenWorking) -> None:
    board = working(Probe(_lose, side_effects=True))
    board.type(action={"use": "probe"})
    board.submit()
    board.wait("T-1", "needs_review")
    for verdict in ("approve", "reject", "revise"):
        assert refused(board, verdict, instruction="x").code == "verdict_not_offered"
    board.decide("T-1", "happened", reason="Paper came out.", reference="job-9", result={"pages": 2})
    board.wait("T-1", "done")
    assert board.data()["result"] == {"pages": 2}
    assert (board.operations()[0]["status"], board.operations()[0]["external_reference"]) == ("confirmed", "job-9")
    assert board.decide("T-1", "happened") is True


async def _lose_unannounced(job: Job) -> Outcome:
    return UnknownOutcome("No answer.") if job.attempt == 1 else Success()


def test_an_unknown_outcome_that_nobody_announced_can_be_answered_too(working: OpenWorking) -> None:
    board = working(Probe(_lose_unannounced, side_effects=True))
    board.type()
    board.submit()
    board.wait("T-1", "needs_review")
    assert board.reviews()[0]["operation"] is None
    board.decide("T-1", "not_happened")
    board.wait("T-1", "done")


def test_a_verdict_of_no_review_is_not_found(working_sqlite: OpenWorking) -> None:
    board = working_sqlite(start=False)
    with pytest.raises(DecisionRefused) as error, board.board.db.write() as tx:
        board.board.decisions.decide(tx, 4711, Verdict("approve"), LI, "api")
    assert error.value.code == "not_found"
