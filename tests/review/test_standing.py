"""Who may decide what, with real tasks: groups, four eyes, and several approvals of one content."""

import threading
from typing import Any

import pytest

from board.access import groups, users
from board.access.errors import AccessError
from board.access.rights import Actor, key_actor, person_actor
from board.review import read
from board.review.decide import DecisionRefused
from board.review.policy import NotEligible
from board.tasks.edit import TaskEdit
from board.tasks.edit import apply as edit
from tests.rig.working import CALLER, LI, OpenWorking, WorkingBoard

ANNA = person_actor("anna@example.org", "reviewer")
BEN = person_actor("ben@example.org", "operator")
CALLER_AS_REVIEWER = key_actor("n8n", ["review"])


def reviewed(board: WorkingBoard, **review: Any) -> None:
    board.type("echo", use="echo", review={"when": "always", "grace": "0s"} | review)
    board.submit(type="echo", payload={"text": "Guten Tag"})
    board.wait("T-1", "needs_review")


def why(board: WorkingBoard, actor: Actor, verdict: str = "approve", **more: Any) -> str:
    with pytest.raises(NotEligible) as error:
        board.decide("T-1", verdict, actor, **more)
    return error.value.why


def document(board: WorkingBoard, actor: Actor) -> dict[str, Any]:
    with board.board.db.read() as connection:
        task = board.task()
        return read.document(connection, board.board.catalogue, board.reviews()[-1], task, {}, actor)


def test_a_group_decides_as_it_is_at_that_moment(working: OpenWorking) -> None:
    board = working()
    reviewed(board, reviewers=["sales"])
    assert why(board, ANNA) == "reviewers"
    assert document(board, ANNA)["yours"] == []
    assert document(board, ANNA)["not_yours"]["message"] == "Only sales may decide this."
    with board.board.db.write() as tx:
        users.add(tx, "anna@example.org", "reviewer")
        groups.add(tx, "sales")
        assert groups.join(tx, "sales", "Anna@example.org") == "user:anna@example.org"
    assert document(board, ANNA)["yours"] == ["approve", "revise", "reject"]
    board.decide("T-1", "approve", ANNA)
    assert board.task()["status"] == "done"


def test_groups_refuse_what_does_not_exist(working: OpenWorking) -> None:
    board = working()
    for call in (
        lambda tx: groups.join(tx, "sales", "anna@example.org"),
        lambda tx: groups.add(tx, "a b"),
        lambda tx: groups.add(tx, "twice") and groups.add(tx, "twice"),
        lambda tx: groups.add(tx, "empty") and groups.join(tx, "empty", "key:none"),
        lambda tx: groups.add(tx, "left") and groups.leave(tx, "left", "anna@example.org"),
        lambda tx: groups.remove(tx, "none"),
    ):
        with pytest.raises(AccessError), board.board.db.write() as tx:
            call(tx)
    with board.board.db.read() as connection:
        assert groups.list_groups(connection) == {}


def test_four_eyes_keep_out_who_put_it_in_and_who_changed_it(working: OpenWorking) -> None:
    board = working()
    reviewed(board, four_eyes=True)
    assert why(board, CALLER_AS_REVIEWER) == "four_eyes"
    assert why(board, CALLER_AS_REVIEWER, "reject") == "four_eyes"
    rooms = board.board
    with rooms.db.write() as tx:
        change = TaskEdit(version=board.task()["version"], payload={"text": "Hallo"})
        changed = rooms.visits.task_edited
        edit(tx, rooms.ledger, rooms.catalogue, rooms.files, changed, board.task()["id"], change, BEN.by("web"))
    assert why(board, BEN) == "four_eyes"
    board.decide("T-1", "approve", ANNA)
    assert board.task()["status"] == "done"


def test_two_approvals_are_given_by_two(working: OpenWorking) -> None:
    board = working()
    reviewed(board, approvals=2)
    assert board.decide("T-1", "approve", LI, reason="Fine.") is False
    assert board.task()["status"] == "needs_review"
    assert document(board, ANNA)["approvals"] == {"given": 1, "needed": 2, "by": ["key:li"]}
    assert board.events()[-1]["kind"] == "approval_given"
    assert (board.events()[-1]["note"], board.events()[-1]["actor_name"]) == ("Fine.", "li")
    assert board.decide("T-1", "approve", LI) is True  # a repeat counts once
    assert why(board, LI, "reject") == "approved"
    assert why(board, CALLER_AS_REVIEWER) == "four_eyes"
    board.decide("T-1", "approve", ANNA)
    assert board.task()["status"] == "done"
    assert board.decide("T-1", "approve", LI) is True  # still a repeat, not a conflict
    assert document(board, ANNA)["approvals"] == {"given": 2, "needed": 2, "by": ["key:li", "user:anna@example.org"]}
    assert board.kinds().count("approved") == 1


def test_one_rejection_decides(working: OpenWorking) -> None:
    board = working()
    reviewed(board, approvals=2)
    board.decide("T-1", "approve", LI)
    board.decide("T-1", "reject", ANNA, reason="No.")
    assert board.task()["status"] == "cancelled"


def test_an_approval_counts_for_the_content_that_was_seen(working: OpenWorking) -> None:
    board = working()
    reviewed(board, approvals=2)
    board.decide("T-1", "approve", LI)
    rooms = board.board
    with rooms.db.write() as tx:
        change = TaskEdit(version=board.task()["version"], payload={"text": "Hallo"})
        changed = rooms.visits.task_edited
        edit(tx, rooms.ledger, rooms.catalogue, rooms.files, changed, board.task()["id"], change, CALLER)
    board.decide("T-1", "approve", ANNA)
    assert board.task()["status"] == "needs_review"
    assert document(board, LI)["approvals"]["by"] == ["user:anna@example.org"]
    board.decide("T-1", "approve", LI)
    assert board.task()["status"] == "done"


def test_an_approval_is_taken_back_alone_or_with_the_decision(working: OpenWorking) -> None:
    board = working()
    reviewed(board, approvals=2, grace="60s")
    board.decide("T-1", "approve", LI)
    board.undo("T-1", LI)
    assert document(board, LI)["approvals"]["given"] == 0
    assert board.kinds()[-1] == "approval_taken_back"
    board.decide("T-1", "approve", LI)
    board.decide("T-1", "approve", ANNA)
    assert board.task()["status"] == "pending"
    with pytest.raises(DecisionRefused):
        board.undo("T-1", LI)  # the decision was the other's
    board.undo("T-1", ANNA)
    assert board.task()["status"] == "needs_review"
    assert document(board, ANNA)["approvals"]["by"] == ["key:li"]  # who had seen the same content is not asked again
    board.decide("T-1", "approve", ANNA)
    assert board.task()["status"] == "pending"


def test_none_of_several_changes_what_the_others_approve(working: OpenWorking) -> None:
    board = working()
    reviewed(board, approvals=2, editable=["text"])
    with pytest.raises(DecisionRefused) as error:
        board.decide("T-1", "approve", LI, edits={"text": "Hallo"})
    assert error.value.code == "not_editable"
    assert document(board, LI)["approvals"]["given"] == 0


def test_three_at_once_are_two_approvals_and_one_latecomer(working: OpenWorking) -> None:
    board = working()
    reviewed(board, approvals=2)
    people = [person_actor(f"{name}@example.org", "reviewer") for name in ("one", "two", "three")]
    start, outcomes = threading.Barrier(3), []

    def decide(actor: Actor) -> None:
        start.wait()
        try:
            outcomes.append(board.decide("T-1", "approve", actor))
        except DecisionRefused as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=decide, args=(actor,)) for actor in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, outcomes)) == ["False", "False", "already_decided"]
    assert board.task()["status"] == "done"
    assert board.kinds().count("approved") == 1


@pytest.mark.parametrize(
    ("template", "payload", "risk"),
    [
        ("{{ 'high' if payload.amount > 1000 else 'low' }}", {"amount": 5000}, "high"),
        ("{{ 'high' if payload.amount > 1000 else 'low' }}", {"amount": 5}, "low"),
        ("{{ result.risk }}", {"risk": " Medium "}, "medium"),
        ("{{ payload.risk }}", {"risk": "none at all"}, "high"),
        ("{{ payload.amount > 1000 and 'high' or 'low' }}", {"amount": "many"}, "high"),
        ("medium", {}, "medium"),
    ],
)
def test_the_risk_comes_from_a_template_and_is_high_in_doubt(
    working: OpenWorking, template: str, payload: dict[str, Any], risk: str
) -> None:
    board = working()
    board.type("echo", use="echo", review={"when": "always", "risk": template})
    board.submit(type="echo", payload=payload)
    board.wait("T-1", "needs_review")
    assert board.reviews()[-1]["risk"] == risk


def test_the_rules_of_the_moment_stay_with_the_decision(working: OpenWorking) -> None:
    board = working()
    with board.board.db.write() as tx:
        for email in (ANNA.name, BEN.name):
            users.add(tx, email, "reviewer")
        groups.add(tx, "sales")
        for email in (ANNA.name, BEN.name):
            groups.join(tx, "sales", email)
    reviewed(board, reviewers=["sales"], approvals=2, risk="medium")
    board.decide("T-1", "approve", ANNA)
    board.type("echo", use="echo", review={"when": "always", "grace": "0s"})
    board.decide("T-1", "approve", BEN)
    [decided] = [event for event in board.events() if event["kind"] == "approved"]
    assert decided["data"]["policy"] == {
        "reason": "policy",
        "risk": "medium",
        "reviewers": ["sales"],
        "approvals": 2,
        "given": 2,
        "four_eyes": False,
        "type_version": 1,
        "role": "operator",
        "named": "sales",
    }
    [counted] = [event for event in board.events() if event["kind"] == "approval_given"]
    assert counted["data"]["policy"] == decided["data"]["policy"] | {"given": 1, "role": "reviewer"}
