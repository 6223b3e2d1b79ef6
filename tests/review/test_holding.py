"""Before a decision: taken, given back, put aside, assigned; each for whoever may decide, and told in the history."""

from datetime import timedelta
from typing import Any

import pytest

from board.access import groups, users
from board.access.rights import person_actor
from board.db.clock import read_now
from board.review import read
from board.review.decide import DecisionRefused
from board.review.filters import Wanted, names_of
from board.review.policy import NotEligible
from tests.rig.working import LI, OpenWorking, WorkingBoard

ANNA = person_actor("anna@example.org", "reviewer")
OWNER = person_actor("owner@example.org", "owner")
VIEWER = person_actor("viewer@example.org", "viewer")


def reviewed(working: OpenWorking, **review: Any) -> tuple[WorkingBoard, int]:
    board = working()
    board.type("echo", use="echo", review={"when": "always", "grace": "60s"} | review)
    board.submit(type="echo")
    board.wait("T-1", "needs_review")
    return board, int(board.reviews()[-1]["id"])


def do(board: WorkingBoard, what: str, *given: Any, **more: Any) -> None:
    with board.board.db.write() as tx:
        getattr(board.board.holding, what)(tx, *given, "api", **more)


def refused(board: WorkingBoard, what: str, *given: Any, **more: Any) -> DecisionRefused:
    before = board.kinds()
    with pytest.raises(DecisionRefused) as error:
        do(board, what, *given, **more)
    assert board.kinds() == before
    return error.value


def listed(board: WorkingBoard, **asked: Any) -> list[int]:
    with board.board.db.read() as connection:
        return [row["id"] for row in read.inbox(connection, **asked).rows]


def test_what_one_has_taken_no_other_decides(working: OpenWorking) -> None:
    board, review = reviewed(working)
    do(board, "claim", review, LI, note=None)
    do(board, "claim", review, LI, note=None)  # ten more minutes: nothing new to tell
    assert board.kinds().count("review_claimed") == 1
    assert refused(board, "claim", review, ANNA, note=None).details[0]["by"] == "key:li"
    assert refused(board, "release", review, ANNA).code == "claimed"
    with pytest.raises(DecisionRefused) as error:
        board.decide("T-1", "approve", ANNA)
    assert error.value.code == "claimed"
    board.decide("T-1", "approve", LI)
    assert board.task()["status"] == "pending"


def test_a_claim_is_over_after_ten_minutes_or_when_it_is_given_back(working: OpenWorking) -> None:
    board, review = reviewed(working)
    do(board, "claim", review, LI, note=None)
    board.at(599)
    assert refused(board, "claim", review, ANNA, note=None).code == "claimed"
    board.at(602)
    do(board, "claim", review, ANNA, note=None)
    assert board.reviews()[-1]["claimed_by"] == "user:anna@example.org"
    do(board, "release", review, ANNA)
    do(board, "release", review, ANNA)
    assert board.kinds()[-3:] == ["review_claimed", "review_claimed", "review_released"]
    board.decide("T-1", "approve", LI)


def test_it_is_taken_over_with_a_word_and_an_owner_needs_none(working: OpenWorking) -> None:
    board, review = reviewed(working)
    do(board, "claim", review, LI, note=None)
    do(board, "claim", review, ANNA, take_over=True, note="Li is ill.")
    told = board.events()[-1]
    assert (told["kind"], told["note"], told["data"]["from"]) == ("review_taken_over", "Li is ill.", "key:li")
    board.decide("T-1", "approve", OWNER)
    assert board.task()["status"] == "pending"
    board.undo("T-1", OWNER)
    board.decide("T-1", "approve", LI)  # what was taken before the decision is free after its undo


def test_only_whoever_may_decide_may_do_these(working: OpenWorking) -> None:
    board, review = reviewed(working, reviewers=["anna@example.org"])
    for actor in (LI, VIEWER):
        for what, given in (("claim", ()), ("release", ()), ("snooze", (None,)), ("assign", (None,))):
            with pytest.raises(NotEligible):
                do(board, what, review, *given, actor, **({"note": None} if what == "claim" else {}))
    do(board, "claim", review, ANNA, note=None)
    with pytest.raises(NotEligible):
        do(board, "comment", review, "Hello.", VIEWER)


def test_what_is_put_aside_comes_back_by_itself(working: OpenWorking) -> None:
    board, review = reviewed(working)
    with board.board.db.read() as connection:
        moment = read_now(connection)
    for bad in (moment - timedelta(seconds=1), moment + timedelta(days=91)):
        assert refused(board, "snooze", review, bad, LI).code == "bad_time"
    do(board, "snooze", review, moment + timedelta(hours=1), LI)
    assert (listed(board), listed(board, status="snoozed")) == ([], [review])
    with board.board.db.read() as connection:
        assert read.count_open(connection) == 0
    board.at(3605)
    assert (listed(board), listed(board, status="snoozed")) == ([review], [])
    with board.board.db.read() as connection:
        moment = read_now(connection)
    do(board, "snooze", review, moment + timedelta(hours=1), LI)
    do(board, "snooze", review, None, LI)
    assert listed(board) == [review]


def test_what_is_put_aside_is_due_all_the_same(working: OpenWorking) -> None:
    board, review = reviewed(working, due="1h")
    with board.board.db.read() as connection:
        moment = read_now(connection)
    do(board, "snooze", review, moment + timedelta(days=7), LI)
    board.at(3700)
    board.until(lambda: board.kinds()[-1] == "review_overdue")
    assert listed(board) == [review]


def test_assigned_to_a_person_or_to_a_group(working: OpenWorking) -> None:
    board, review = reviewed(working)
    assert refused(board, "assign", review, "nobody@example.org", LI).code == "unknown_assignee"
    with board.board.db.write() as tx:
        users.add(tx, "anna@example.org", "reviewer")
        groups.add(tx, "sales")
        groups.join(tx, "sales", "anna@example.org")
    with board.board.db.read() as connection:
        names = names_of(connection, ANNA)
    for assignee in ("Anna@example.org", "sales"):
        do(board, "assign", review, assignee, LI)
        assert board.task()["assignee"] == assignee.lower()
        assert listed(board, wanted=Wanted(assignees=names)) == [review]
    do(board, "assign", review, None, LI)
    assert board.task()["assignee"] is None
    assert listed(board, wanted=Wanted(assignees=names)) == []
    assert board.kinds()[-3:] == ["assigned"] * 3


def test_none_of_it_after_the_decision(working: OpenWorking) -> None:
    board, review = reviewed(working)
    board.decide("T-1", "approve", ANNA)
    for what, given in (("claim", ()), ("release", ()), ("snooze", (None,)), ("assign", (None,))):
        error = refused(board, what, review, *given, LI, **({"note": None} if what == "claim" else {}))
        assert error.code == "already_decided"
    do(board, "comment", review, "Well done.", LI)
    assert (board.events()[-1]["kind"], board.events()[-1]["note"]) == ("note", "Well done.")


def test_what_was_put_aside_and_decided_is_back_after_an_undo(working: OpenWorking) -> None:
    board, review = reviewed(working)
    with board.board.db.read() as connection:
        moment = read_now(connection)
    do(board, "snooze", review, moment + timedelta(hours=1), LI)
    board.decide("T-1", "approve", LI)
    board.undo("T-1", LI)
    assert listed(board) == [review]
