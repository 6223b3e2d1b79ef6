"""Reviews that nobody decides in time: what the type says comes true once, and never against a person's decision."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, text

from board.db.clock import read_now
from board.ports import Job, Outcome, Success, UnknownOutcome
from board.review import overdue
from board.review.decide import DecisionRefused
from tests.rig.working import LI, OpenWorking, Probe, WorkingBoard

HOUR = 3600.0


def reviewed(board: WorkingBoard, use: str = "echo", **review: Any) -> None:
    board.type("trial", use=use, review={"when": "always", "grace": "0s", "due": "1h"} | review)
    board.submit()
    board.wait("T-1", "needs_review")


def look(board: WorkingBoard) -> int:
    rooms = board.board
    return overdue.look(rooms.db, rooms.ledger, rooms.catalogue, rooms.decisions)


@pytest.mark.parametrize(
    ("on_expire", "status", "kinds"),
    [
        ("escalate", "needs_review", ["review_overdue"]),
        ("cancel", "cancelled", ["review_expired"]),
        ("fail", "failed", ["review_expired"]),
        ("approve", "done", ["approved", "done"]),
    ],
)
def test_what_the_type_says_comes_true(working: OpenWorking, on_expire: str, status: str, kinds: list[str]) -> None:
    board = working()
    reviewed(board, on_expire=on_expire)
    before = len(board.kinds())
    assert look(board) == 0
    board.at(HOUR - 1)
    assert look(board) == 0
    board.at(HOUR + 1)
    look(board)  # or the board itself has been quicker
    board.wait("T-1", status)
    assert board.kinds()[before:] == kinds
    assert board.events()[before]["actor_kind"] == "timer"
    assert look(board) == 0
    assert board.kinds()[before:] == kinds


def test_the_board_looks_by_itself(working: OpenWorking) -> None:
    board = working()
    reviewed(board, on_expire="cancel")
    board.at(HOUR + 1)
    board.wait("T-1", "cancelled")


def test_the_one_question_a_second_sees_it(working: OpenWorking) -> None:
    board = working()
    reviewed(board, on_expire="cancel")
    board.stop()
    glance = board.board.make_consumer()._glance
    assert "look at overdue reviews" not in glance.look().due
    board.at(HOUR + 1)
    assert "look at overdue reviews" in glance.look().due


def test_it_is_found_by_the_index_on_what_is_open(working: OpenWorking) -> None:
    board = working(start=False)
    with board.board.db.read() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL enable_seqscan = off"))
        question = select(overdue.any_due()).compile(connection, compile_kwargs={"literal_binds": True})
        explain = "EXPLAIN QUERY PLAN " if connection.dialect.name == "sqlite" else "EXPLAIN "
        plan = "\n".join(str(row) for row in connection.exec_driver_sql(explain + str(question).replace("%", "%%")))
    # Of the indexes on open reviews alone: which one makes no difference while there are few.
    assert any(name in plan for name in ("ix_reviews_open", "ux_reviews_one_open", "ix_reviews_inbox")), plan
    assert "Seq Scan" not in plan
    assert "SCAN reviews" not in plan.replace("SCAN reviews USING", "")


def test_an_escalation_is_due_again_after_the_same_time(working: OpenWorking) -> None:
    board = working()
    reviewed(board)
    first = board.reviews()[-1]["due_at"]
    board.at(HOUR + 60)
    look(board)
    second = board.reviews()[-1]["due_at"]
    assert (second - first).total_seconds() == pytest.approx(HOUR + 60, abs=15)
    board.at(2 * HOUR + 120)
    look(board)
    assert board.kinds().count("review_overdue") == 2
    board.decide("T-1", "approve")
    assert board.task()["status"] == "done"


def test_whoever_was_still_typing_is_told(working: OpenWorking) -> None:
    board = working()
    reviewed(board, on_expire="cancel")
    board.at(HOUR + 1)
    look(board)
    board.wait("T-1", "cancelled")
    with pytest.raises(DecisionRefused) as error:
        board.decide("T-1", "approve")
    assert error.value.code == "already_decided"
    assert "without a decision; the task is cancelled" in str(error.value)


def test_the_clocks_approval_is_shown_as_its_own(working: OpenWorking) -> None:
    board = working()
    reviewed(board, on_expire="approve")
    board.at(HOUR + 1)
    look(board)
    board.wait("T-1", "done")
    [review] = board.reviews()
    assert (review["verdict"], review["decider"], review["channel"]) == ("approve", "timer:board", "timer")
    assert board.data()["decision"]["by"] == "timer:board"
    with pytest.raises(DecisionRefused) as error:
        board.decide("T-1", "reject")
    assert error.value.details[0]["by"] == "timer:board"


async def lost(job: Job) -> Outcome:
    await job.send(kind="test.call", target="https://bank.example.org/pay", request=b"{}")
    return UnknownOutcome("The answer was lost.")


async def partial(job: Job) -> Outcome:
    return Success({}, ask="partial_result", ask_message="Half of it is missing.")


@pytest.mark.parametrize(("does", "on_expire"), [(lost, "cancel"), (lost, "approve"), (partial, "approve")])
def test_what_nobody_knows_or_nobody_saw_stays(working: OpenWorking, does: Any, on_expire: str) -> None:
    board = working(Probe(does, side_effects=True))
    reviewed(board, use="probe", on_expire=on_expire)
    board.at(HOUR + 1)
    look(board)
    board.wait("T-1", "needs_review")
    assert board.kinds()[-1] == "review_overdue"


def test_a_template_that_finds_a_higher_risk_keeps_the_clock_from_approving(working: OpenWorking) -> None:
    board = working()
    reviewed(board, on_expire="fail", risk="{{ 'high' }}")
    board.at(HOUR + 1)
    look(board)
    board.wait("T-1", "failed")
    assert board.task()["last_error"] == "Nobody decided in time."


def test_after_an_undo_the_time_counts_anew(working: OpenWorking) -> None:
    board = working()
    reviewed(board, on_expire="cancel", grace="60s")
    board.at(HOUR - 10)
    board.decide("T-1", "reject")
    board.at(HOUR + 20)
    board.undo("T-1")
    assert look(board) == 0
    assert board.task()["status"] == "needs_review"


def test_a_person_and_the_clock_at_once_are_one_outcome(working: OpenWorking) -> None:
    board = working(start=False)
    board.type("trial", use="none", review={"grace": "0s", "due": "1h", "on_expire": "cancel"})
    for number in range(6):
        board.submit(f"T-{number}")
    board.start()
    for number in range(6):
        board.wait(f"T-{number}", "needs_review")
    board.at(HOUR + 1)
    start, refused = threading.Barrier(2), []

    def people() -> None:
        start.wait()
        for number in range(6):
            try:
                board.decide(f"T-{number}", "approve")
            except DecisionRefused as error:
                refused.append((number, error.code))

    thread = threading.Thread(target=people)
    thread.start()
    start.wait()
    look(board)
    thread.join()
    for number in range(6):
        late = (number, "already_decided") in refused
        assert board.task(f"T-{number}")["status"] == ("cancelled" if late else "done")
        assert board.kinds(f"T-{number}").count("review_expired") == int(late)


def test_one_that_resists_holds_up_no_other(working: OpenWorking, monkeypatch: pytest.MonkeyPatch) -> None:
    board = working(start=False)
    board.type("trial", use="none", review={"due": "1h", "on_expire": "cancel"})
    board.submit("T-1")
    board.submit("T-2")
    board.start()
    for name in ("T-1", "T-2"):
        board.wait(name, "needs_review")
    board.stop()
    broken, whole = board.task("T-1")["id"], board.board.ledger.lock

    def lock(tx: Any, task: int) -> Any:
        if task == broken:
            raise ValueError("It cannot be read.")
        return whole(tx, task)

    monkeypatch.setattr(board.board.ledger, "lock", lock)
    board.at(HOUR + 1)
    assert look(board) == 1
    assert [board.task(name)["status"] for name in ("T-1", "T-2")] == ["needs_review", "cancelled"]


def test_two_leaders_escalate_once(working: OpenWorking) -> None:
    board = working()
    reviewed(board)
    board.stop()
    board.at(HOUR + 1)
    start, done = threading.Barrier(2), []

    def leader() -> None:
        start.wait()
        done.append(look(board))

    both = [threading.Thread(target=leader) for _ in range(2)]
    for it in both:
        it.start()
    for it in both:
        it.join()
    assert sum(done) == 1
    assert board.kinds().count("review_overdue") == 1


def test_what_is_put_aside_comes_back_when_it_is_overdue(working: OpenWorking) -> None:
    board = working()
    reviewed(board)
    board.stop()
    with board.board.db.write() as tx:
        later = read_now(tx) + timedelta(days=2)
        board.board.holding.snooze(tx, board.reviews()[-1]["id"], later, LI, "web")
    board.at(HOUR + 1)
    assert look(board) == 1
    assert board.reviews()[-1]["snoozed_until"] is None


def test_a_clock_that_goes_back_says_nothing_twice(working: OpenWorking) -> None:
    board = working()
    reviewed(board)
    board.stop()
    board.at(HOUR + 1)
    assert look(board) == 1
    board.at(10)
    assert look(board) == 0
    board.at(HOUR + 2)
    assert look(board) == 0, "it is due an hour after the word"
    assert board.kinds().count("review_overdue") == 1
