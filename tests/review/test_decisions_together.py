"""Decisions at the same moment, and of what has changed since it was shown."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from board.review.decide import DecisionRefused
from board.tasks.edit import TaskEdit
from board.tasks.edit import apply as edit
from tests.review.deciding import ANNA, refused, reviewed
from tests.rig.receiver import Receiver
from tests.rig.working import CALLER, LI, OpenWorking


def together(*works: Callable[[], Any]) -> list[Any]:
    """Run at the same moment, each in a thread; what each returned or raised."""
    start = threading.Barrier(len(works))
    results: list[Any] = [None] * len(works)

    def run(index: int, work: Callable[[], Any]) -> None:
        start.wait()
        try:
            results[index] = work()
        except Exception as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=item) for item in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_two_approvals_at_once_by_one_person_count_once(working: OpenWorking, receiver: Receiver) -> None:
    """B069: one transition, one event, one callback; the second is told that it is repeated."""
    board = working()
    board.type("echo", use="echo", review={"when": "always", "grace": "0s"})
    for number in range(5):
        name = f"T-{number}"
        board.submit(name, type="echo", callback_url=f"{receiver.url}/{name}")
        board.wait(name, "needs_review")
        results = together(*[lambda name=name: board.decide(name, "approve", ANNA)] * 3)  # type: ignore[misc]
        assert sorted(results) == [False, True, True]
        assert board.kinds(name).count("approved") == board.kinds(name).count("done") == 1
        assert len(board.operations(name)) == 1
    receiver.wait_for(5)
    board.until(lambda: all(board.operations(f"T-{number}")[0]["status"] == "confirmed" for number in range(5)))
    assert len(receiver.requests) == 5


@pytest.mark.parametrize("second", ["approve", "reject", "revise"])
def test_two_people_at_once_one_wins(working: OpenWorking, second: str) -> None:
    board = working()
    reviewed(board)
    results = together(
        lambda: board.decide("T-1", "approve", ANNA), lambda: board.decide("T-1", second, LI, instruction="x")
    )
    [made] = [result for result in results if result is False]
    [late] = [result for result in results if result is not made]
    assert isinstance(late, DecisionRefused)
    assert late.code == "already_decided"
    assert sum(board.kinds().count(kind) for kind in ("approved", "rejected", "revised")) == 1
    assert board.reviews()[0]["decider"] == ("user:anna@example.org" if results[0] is False else "key:li")


def test_the_same_revision_twice_at_once_is_one_round(working: OpenWorking) -> None:
    """B005"""
    board = working()
    reviewed(board)
    results = together(*[lambda: board.decide("T-1", "revise", instruction="Shorter.")] * 2)
    assert sorted(results) == [False, True]
    board.until(lambda: len(board.reviews()) == 2)
    assert board.task()["round"] == 2
    assert board.kinds().count("revised") == 1


@pytest.mark.parametrize("stale", ["version", "content_hash"])
def test_what_has_changed_since_it_was_shown_is_not_decided(working: OpenWorking, stale: str) -> None:
    board = working()
    reviewed(board)
    shown = board.reviews()[0]
    heart = board.board
    with heart.db.write() as tx:
        change = TaskEdit(version=board.task()["version"], payload={"text": "Guten Abend"})
        edit(
            tx,
            heart.ledger,
            heart.catalogue,
            heart.files,
            heart.visits.task_edited,
            board.task()["id"],
            change,
            CALLER,
        )
    now = board.reviews()[0]
    assert (now["version"], now["status"]) == (shown["version"] + 1, "open")
    assert now["content_hash"] != shown["content_hash"]
    late = refused(board, "approve", **{stale: shown[stale]})
    assert late.code == "review_changed"
    assert late.details == [{"version": now["version"], "content_hash": now["content_hash"]}]
    board.decide("T-1", "approve", version=now["version"], content_hash=now["content_hash"])
    assert board.task()["status"] == "done"


def test_an_edit_that_shows_nothing_new_changes_no_version(working: OpenWorking) -> None:
    board = working()
    reviewed(board)
    shown = board.reviews()[0]
    heart = board.board
    with heart.db.write() as tx:
        change = TaskEdit(version=board.task()["version"], tags=["later"], note="for Li")
        edit(
            tx,
            heart.ledger,
            heart.catalogue,
            heart.files,
            heart.visits.task_edited,
            board.task()["id"],
            change,
            CALLER,
        )
    assert board.reviews()[0] == shown
    board.decide("T-1", "approve", version=shown["version"], content_hash=shown["content_hash"])
