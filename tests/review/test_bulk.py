"""Which reviews may be approved together, and that each is decided on its own."""

from typing import Any

import pytest
from sqlalchemy import Connection, update

from board.access.rights import Actor, key_actor
from board.db.engine import after_commit
from board.review import bulk
from board.review.models import reviews
from board.review.policy import NotEligible
from tests.rig.working import LI, OpenWorking, WorkingBoard


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    opened = working()
    for name in ("letter", "other"):
        opened.type(name, "echo", review={"when": "always", "grace": "1m"})
    opened.type("direct", "none")
    return opened


def asked(board: WorkingBoard, task_id: str, type: str = "letter", **payload: object) -> int:
    board.submit(task_id, type, payload={"text": task_id} | payload)
    board.wait(task_id, "needs_review")
    return int(board.reviews(task_id)[-1]["id"])


def pin(board: WorkingBoard, task_id: str) -> bulk.Pin:
    row = board.reviews(task_id)[-1]
    return bulk.Pin(row["id"], row["version"], row["content_hash"])


def run(board: WorkingBoard, *pins: bulk.Pin, actor: Actor = LI) -> bulk.Report:
    return bulk.approve(board.board.db, board.board.decisions, pins, actor, "web")


def test_one_type_one_shape_low_risk_and_open(board: WorkingBoard) -> None:
    first, same = asked(board, "T-1"), asked(board, "T-2")
    other_type, other_shape = asked(board, "T-3", "other"), asked(board, "T-4", extra=1)
    risky, decided = asked(board, "T-5"), asked(board, "T-6")
    with board.board.db.write() as tx:
        tx.execute(update(reviews).where(reviews.c.id == risky).values(risk="medium"))
    board.decide("T-6", "approve")
    with board.board.db.read() as connection:
        plan = bulk.plan(
            connection,
            board.board.decisions,
            [first, same, other_type, other_shape, risky, decided, first, 999_999],
            LI,
        )
    assert [row["id"] for row in plan.together] == [first, same]
    assert [(row["id"], why) for row, why in plan.apart] == [
        (other_type, "other_type"),
        (other_shape, "other_shape"),
        (risky, "risk"),
        (decided, "not_open"),
    ]


def test_no_more_than_a_person_can_look_through(board: WorkingBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MOST", 2)
    ids = [asked(board, f"T-{number}") for number in range(3)]
    with board.board.db.read() as connection:
        plan = bulk.plan(connection, board.board.decisions, ids, LI)
    assert [len(plan.together), [why for _, why in plan.apart]] == [2, ["too_many"]]


def test_what_changed_meanwhile_is_left_out_and_the_rest_is_approved(board: WorkingBoard) -> None:
    for task_id in ("T-1", "T-2", "T-3"):
        asked(board, task_id)
    pins = [pin(board, task_id) for task_id in ("T-1", "T-2", "T-3")]
    with board.board.db.write() as tx:
        tx.execute(update(reviews).where(reviews.c.id == pins[1].review).values(version=2))
    board.decide("T-3", "reject")
    report = run(board, *pins)
    assert report.done == [pins[0].review]
    assert report.refused == [(pins[1].review, "review_changed"), (pins[2].review, "already_decided")]
    assert [board.kinds(task_id).count("approved") for task_id in ("T-1", "T-2", "T-3")] == [1, 0, 0]
    assert run(board, pins[0]).done == [pins[0].review], "sent twice, it counts once"
    assert board.kinds("T-1").count("approved") == 1


def test_what_may_not_go_together_is_refused_whatever_the_list_says(board: WorkingBoard) -> None:
    asked(board, "T-1")
    risky = asked(board, "T-2")
    with board.board.db.write() as tx:
        tx.execute(update(reviews).where(reviews.c.id == risky).values(risk="high"))
    report = run(board, pin(board, "T-1"), pin(board, "T-2"))
    assert report.refused == [(risky, "not_together")]
    assert board.task("T-2")["status"] == "needs_review"


def test_all_of_them_are_taken_back_as_long_as_that_is_possible(board: WorkingBoard) -> None:
    ids = [asked(board, task_id) for task_id in ("T-1", "T-2")]
    run(board, pin(board, "T-1"), pin(board, "T-2"))
    report = bulk.undo(board.board.db, board.board.decisions, [*ids, 999_999], LI, "web")
    assert (report.done, report.refused) == (ids, [(999_999, "not_found")])
    assert {board.task(task_id)["status"] for task_id in ("T-1", "T-2")} == {"needs_review"}


def test_only_whoever_may_decide(board: WorkingBoard) -> None:
    asked(board, "T-1")
    with pytest.raises(NotEligible):
        run(board, pin(board, "T-1"), actor=key_actor("reader", ["read"]))


def test_what_others_decide_or_several_approve_is_left_out(board: WorkingBoard) -> None:
    board.type("theirs", "echo", review={"when": "always", "reviewers": ["sales"]})
    board.type("several", "echo", review={"when": "always", "approvals": 2})
    theirs, several = asked(board, "T-1", "theirs"), asked(board, "T-2", "several")
    with board.board.db.read() as connection:
        plan = bulk.plan(connection, board.board.decisions, [theirs, several], LI)
    assert plan.together == []
    assert [(row["id"], why) for row, why in plan.apart] == [(theirs, "not_eligible"), (several, "several")]
    report = run(board, pin(board, "T-1"), pin(board, "T-2"))
    assert (report.done, {code for _, code in report.refused}) == ([], {"not_together"})
    assert board.task("T-2")["status"] == "needs_review"


# -- the address that the action calls ----------------------------------------------------------------------------


def leads_to(board: WorkingBoard, url: str) -> None:
    board.apply(connections=[{"name": "out", "kind": "webhook", "url": url, "secret": "s" * 24}])


@pytest.fixture
def calling(board: WorkingBoard) -> WorkingBoard:
    leads_to(board, "https://one.example.org/hook")
    board.type("send", "echo", review={"when": "always", "grace": "1m"}, action={"use": "webhook", "connection": "out"})
    for task_id in ("T-1", "T-2"):
        asked(board, task_id, "send")
    return board


def planned(board: WorkingBoard) -> list[bulk.Pin]:
    ids = [board.reviews(task_id)[-1]["id"] for task_id in ("T-1", "T-2")]
    with board.board.db.read() as connection:
        plan = bulk.plan(connection, board.board.decisions, ids, LI)
    return [plan.pins[row["id"]] for row in plan.together]


def test_what_is_shown_is_pinned_also_where_the_address_has_changed_since_the_review_came(
    calling: WorkingBoard,
) -> None:
    leads_to(calling, "https://two.example.org/hook")
    pins = planned(calling)
    assert run(calling, *pins).done == [pin.review for pin in pins]


def test_an_address_that_changed_after_it_was_shown_is_approved_for_none(calling: WorkingBoard) -> None:
    pins = planned(calling)
    leads_to(calling, "https://two.example.org/hook")
    report = run(calling, *pins)
    assert (report.done, report.refused) == ([], [(pin.review, "review_changed") for pin in pins])


def test_an_address_that_changes_between_two_of_them_stops_the_second(calling: WorkingBoard) -> None:
    pins = planned(calling)
    decide = calling.board.decisions.decide

    def decide_then_change(tx: Connection, review: int, *more: Any) -> bool:
        after_commit(tx, lambda: leads_to(calling, "https://two.example.org/hook"))
        return decide(tx, review, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calling.board.decisions, "decide", decide_then_change)
        report = run(calling, *pins)
    assert (report.done, report.refused) == ([pins[0].review], [(pins[1].review, "review_changed")])
    assert bulk.summary(report, "approved") == "1 approved, 1 changed meanwhile."
