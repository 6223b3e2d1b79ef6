"""Calls that outside workers announce under their claims: what is lost with a claim is unknown, never done twice."""

from __future__ import annotations

from typing import Any

import pytest

from board.effects import operations
from board.effects.outside import Reservation
from board.effects.steps import Step
from board.review.decide import DecisionRefused, Verdict
from board.review.resolve import Resolved
from board.tasks.requeue import requeue
from board.worker.claims import Claimed, ClaimLost
from board.worker.outside_calls import Wish
from tests.effects.test_operation_keys import notes
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import CALLER, LI, OpenWorking, WorkingBoard
from tests.worker.claims.outside import N8N, OTHER, complete, fail, lose_lease, one, take

BILL = Wish("invoice:7", "Billing", "hash", task_id="T-1")


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    board = working(start=False)
    board.type(use="outside")
    board.submit()
    return board


def announce(board: WorkingBoard, wish: Wish = BILL, actor: Any = N8N) -> Reservation:
    return board.board.outside_calls.reserve(actor, wish)


def say(board: WorkingBoard, made: Reservation, to: Any, **more: Any) -> None:
    board.board.outside_calls.step(N8N, made.operation["id"], Step(to, **more))


def resolve(board: WorkingBoard, operation: int, verdict: str, **more: Any) -> Resolved:
    with board.board.db.write() as tx:
        answer = Verdict(verdict, reason="I have looked.", **more)
        return board.board.resolutions.resolve(tx, operation, answer, LI, "api")


def status_of(board: WorkingBoard, made: Reservation) -> str:
    with board.board.db.read() as connection:
        row = operations.by_id(connection, made.operation["id"])
    assert row is not None
    return str(row["status"])


def test_a_call_stands_under_its_claim(board: WorkingBoard) -> None:
    claimed = one(board)
    made = announce(board)
    assert (made.operation["task_id"], made.operation["phase"], made.operation["lease_token"]) == ("T-1", "work", 1)
    say(board, made, "confirmed", reference="INV-7")
    complete(board, claimed)
    assert board.task()["status"] == "done"
    assert board.operations()[0]["external_reference"] == "INV-7"


@pytest.mark.parametrize("said", [None, "sent", "unknown"])
def test_a_lost_claim_with_an_open_call_asks_a_person_and_is_not_handed_out_again(
    board: WorkingBoard, said: str | None
) -> None:
    one(board)
    made = announce(board)
    if said is not None:
        say(board, made, said)
    lose_lease(board)
    task, [review] = board.task(), board.reviews()
    assert (task["status"], task["crash_count"], task["error_class"]) == ("needs_review", 1, "unknown")
    assert (review["reason"], review["operation"]) == ("unknown_outcome", made.operation["id"])
    assert "It had announced a call to Billing and not said what became of it." in (review["message"] or "")
    assert status_of(board, made) == "unknown"
    assert take(board) == []


def test_not_happened_hands_it_out_again_and_the_key_may_be_reserved_again(board: WorkingBoard) -> None:
    one(board)
    made = announce(board)
    lose_lease(board)
    resolve(board, made.operation["id"], "not_happened")
    claimed = one(board)
    again = announce(board)
    assert (again.go_ahead, again.operation["id"], again.operation["lease_token"]) == (True, made.operation["id"], 2)
    say(board, again, "confirmed")
    complete(board, claimed)
    assert board.task()["status"] == "done"


def test_happened_is_done_with_the_result_that_the_person_gives(board: WorkingBoard) -> None:
    one(board)
    made = announce(board)
    lose_lease(board)
    resolve(board, made.operation["id"], "happened", reference="INV-7", result={"total": 119})
    assert (board.task()["status"], board.data()["result"]) == ("done", {"total": 119})
    assert status_of(board, made) == "confirmed"


def test_without_an_announced_call_a_lost_claim_comes_back_as_before(board: WorkingBoard) -> None:
    claimed = one(board)
    made = announce(board)
    say(board, made, "confirmed", reference="INV-7")  # closed: everybody knows what became of it
    lose_lease(board)
    assert board.task()["status"] == "retrying"
    with pytest.raises(ClaimLost):
        complete(board, claimed)
    second = one(board)
    again = announce(board)
    assert (again.go_ahead, again.operation["external_reference"]) == (False, "INV-7")
    complete(board, second)
    assert board.task()["status"] == "done"


def test_calls_that_hurt_nobody_are_announced_again(board: WorkingBoard) -> None:
    board.type("harmless", use="outside", handler={"side_effects": False})
    board.submit("T-2", type="harmless")
    wish = Wish("look:7", "Register", "hash", task_id="T-2")
    [first] = take(board, types=["harmless"])
    made = announce(board, wish)
    lose_lease(board, "T-2")
    assert board.task("T-2")["status"] == "retrying"
    take(board, types=["harmless"])
    again = announce(board, wish)
    assert (again.go_ahead, again.operation["id"], again.operation["tries"]) == (True, made.operation["id"], 2)
    with pytest.raises(ClaimLost):
        complete(board, Claimed(N8N, first.claim_id))


@pytest.mark.parametrize("end", ["fail", "release"])
def test_a_claim_that_ends_without_saying_how_its_call_went_asks_a_person(board: WorkingBoard, end: str) -> None:
    claimed = one(board)
    made = announce(board)
    if end == "fail":
        fail(board, claimed)
    else:
        board.board.claims.release(claimed)
    task, [review] = board.task(), board.reviews()
    assert (task["status"], review["reason"]) == ("needs_review", "unknown_outcome")
    assert "What became of its call to Billing was not said." in (review["message"] or "")
    assert status_of(board, made) == "unknown"


@pytest.mark.parametrize("end", ["fail", "release"])
def test_what_was_rejected_is_no_reason_to_ask(board: WorkingBoard, end: str) -> None:
    claimed = one(board)
    say(board, announce(board), "rejected")
    if end == "fail":
        fail(board, claimed)
    else:
        board.board.claims.release(claimed)
    assert board.task()["status"] == ("retrying" if end == "fail" else "pending")


def test_several_calls_are_answered_one_after_the_other_and_one_that_did_not_happen_sends_again(
    board: WorkingBoard,
) -> None:
    one(board)
    bill, crm = announce(board), announce(board, Wish("crm:7", "CRM", "hash", task_id="T-1"))
    lose_lease(board)
    assert board.reviews()[0]["operation"] == crm.operation["id"]
    resolve(board, bill.operation["id"], "not_happened")
    assert (board.task()["status"], status_of(board, bill), status_of(board, crm)) == (
        "needs_review",
        "rejected",
        "unknown",
    )
    [review] = board.reviews()
    assert (review["operation"], review["version"]) == (crm.operation["id"], 2)
    resolve(board, crm.operation["id"], "happened", reference="C-1")
    assert board.task()["status"] == "pending"  # the bill is still to be written
    assert board.kinds()[-2:] == ["operation_resolved", "send_again"]
    one(board)
    assert announce(board).go_ahead
    assert not announce(board, Wish("crm:7", "CRM", "hash", task_id="T-1")).go_ahead


def test_dropping_one_of_several_drops_the_task_and_keeps_the_question_about_the_other(board: WorkingBoard) -> None:
    one(board)
    bill, crm = announce(board), announce(board, Wish("crm:7", "CRM", "hash", task_id="T-1"))
    lose_lease(board)
    resolve(board, bill.operation["id"], "drop")
    assert (board.task()["status"], status_of(board, bill), status_of(board, crm)) == (
        "cancelled",
        "rejected",
        "unknown",
    )
    resolve(board, crm.operation["id"], "happened")
    assert (board.task()["status"], status_of(board, crm)) == ("cancelled", "confirmed")
    assert board.kinds()[-1] == "operation_resolved"


def test_a_program_that_comes_back_says_what_it_knows_and_a_person_cannot_contradict_it(board: WorkingBoard) -> None:
    one(board)
    made = announce(board)
    lose_lease(board)
    say(board, made, "confirmed", reference="INV-7")
    with pytest.raises(DecisionRefused, match="key:n8n has found out meanwhile: it happened") as refused:
        resolve(board, made.operation["id"], "not_happened")
    assert refused.value.code == "outcome_known"
    resolve(board, made.operation["id"], "happened")
    assert board.task()["status"] == "done"
    assert board.operations()[0]["external_reference"] == "INV-7"


def test_who_has_lost_its_claim_announces_nothing_more(board: WorkingBoard) -> None:
    """B025, B027: what an old worker still wants to do is not done."""
    one(board)
    lose_lease(board)
    with pytest.raises(ClaimLost) as lost:
        announce(board)
    assert lost.value.reason == "lease_expired"
    one(board)
    assert announce(board).go_ahead  # the new claim of the same key
    board.cancel("T-1")
    with pytest.raises(ClaimLost) as lost:
        announce(board, Wish("crm:7", "CRM", "hash", task_id="T-1"))
    assert lost.value.reason == "cancelled"


def test_after_a_complete_and_for_who_never_had_a_claim_a_call_only_names_its_task(board: WorkingBoard) -> None:
    claimed = one(board)
    other = announce(board, Wish("crm:7", "CRM", "hash", task_id="T-1"), OTHER)
    complete(board, claimed)
    after = announce(board)
    for made in (other, after):
        assert made.go_ahead
        assert (made.operation["task_id"], made.operation["phase"], made.operation["lease_token"]) == ("T-1", None, 0)


def test_a_cancelled_task_leaves_its_call_unknown_and_a_requeue_asks_about_it_first(board: WorkingBoard) -> None:
    claimed = one(board)
    made = announce(board)
    board.cancel("T-1")
    board.board.claims.release(claimed)
    assert (board.task()["status"], status_of(board, made)) == ("cancelled", "unknown")
    heart = board.board
    with heart.db.write() as tx:
        requeue(tx, heart.ledger, heart.catalogue, board.task()["id"], CALLER)
    assert take(board) == []
    [review] = board.reviews()
    assert (board.task()["status"], review["operation"]) == ("needs_review", made.operation["id"])
    assert "An earlier claim has not said what became of its call to Billing." in (review["message"] or "")


def test_an_action_and_an_outside_program_that_mean_the_same_act_once(working: OpenWorking, receiver: Receiver) -> None:
    """The n8n flow that the action calls writes under a key of its own; under the action's key it is refused."""
    receiver.reply(Reply(delay=1.0))
    board = working()
    board.apply(connections=[{"name": "hook", "kind": "webhook", "url": receiver.url}])
    board.type("publish", use="echo", action={"use": "webhook", "connection": "hook"})
    board.submit(type="publish")
    receiver.wait_for(1)
    made = announce(board)
    assert (made.operation["task_id"], made.operation["lease_token"]) == ("T-1", 0)
    task = board.wait("T-1", "done")  # its own call alone decides about the task
    assert (task["status"], status_of(board, made)) == ("done", "reserved")
    key = next(it["key"] for it in board.operations() if it["owner"] is None)
    own = board.operations()[0]
    recorded = announce(board, Wish(key, "Publish", own["request_hash"]))
    assert (recorded.go_ahead, recorded.message) == (False, "This was done before.")


def test_every_step_is_kept_with_who_took_it(board: WorkingBoard) -> None:
    one(board)
    made = announce(board)
    say(board, made, "sent")
    lose_lease(board)
    resolve(board, made.operation["id"], "drop")
    kinds = [kind for kind, _ in notes(board, "invoice:7")]
    assert kinds == ["reserved", "sent", "unknown", "resolved"]
