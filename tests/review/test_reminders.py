"""A word before a review is due: once, to the right people, and never about what is decided."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from board.access import groups
from board.db.clock import read_now
from board.review import overdue, reminders
from board.review.decide import Verdict
from tests.rig.working import LI, OpenWorking, WorkingBoard

HOUR = 3600.0
SOON = reminders.AFTER * HOUR


def reviewed(board: WorkingBoard, **review: Any) -> None:
    board.type(use="echo", review={"when": "always", "grace": "10s", "due": "1h"} | review)
    board.submit()
    board.wait("T-1", "needs_review")


def look(board: WorkingBoard) -> int:
    return reminders.look(board.board.db, board.board.ledger, board.board.catalogue)


def words(board: WorkingBoard) -> list[Any]:
    return [event["data"] for event in board.events() if event["kind"] == "review_reminder"]


def test_one_word_when_a_fifth_of_the_time_is_left(working: OpenWorking) -> None:
    board = working()
    reviewed(board, reviewers=["sales", "li@example.org"])
    board.stop()
    board.at(SOON - 5)
    assert look(board) == 0
    board.at(SOON + 5)
    assert look(board) == 1
    assert look(board) == 0
    [said] = words(board)
    assert said["to"] == ["sales", "li@example.org"]
    assert said["review"] == str(board.reviews()[0]["id"])
    assert said["due_at"]
    assert board.reviews()[0]["status"] == "open"


def test_the_board_looks_by_itself(working: OpenWorking) -> None:
    board = working()
    reviewed(board)
    board.at(SOON + 5)
    board.until(lambda: "review_reminder" in board.kinds())
    assert words(board)[0]["to"] == []


@pytest.mark.parametrize(("before", "told"), [(60, ["key:li"]), (700, ["sales"])], ids=["has it", "had it once"])
def test_whoever_has_taken_it_is_told(working_sqlite: OpenWorking, before: float, told: list[str]) -> None:
    board = working_sqlite()
    reviewed(board)
    board.stop()
    board.at(SOON - before)
    review = board.reviews()[0]["id"]
    with board.board.db.write() as tx:
        groups.add(tx, "sales")
        board.board.holding.assign(tx, review, "sales", LI, "web")
        board.board.holding.claim(tx, review, LI, "web", note=None)
    board.at(SOON + 5)
    look(board)
    assert words(board)[0]["to"] == told


def test_what_is_put_aside_is_reminded_of_in_its_time(working_sqlite: OpenWorking) -> None:
    board = working_sqlite()
    reviewed(board)
    board.stop()
    with board.board.db.write() as tx:
        later = read_now(tx) + timedelta(days=2)
        board.board.holding.snooze(tx, board.reviews()[0]["id"], later, LI, "web")
    board.at(SOON + 5)
    assert look(board) == 1


def test_after_a_leap_of_the_clock_nobody_hears_that_it_will_be_due(working: OpenWorking) -> None:
    board = working()
    reviewed(board)
    board.stop()
    board.at(HOUR + 5)
    assert look(board) == 0
    assert words(board) == []
    board.at(SOON + 5)
    assert look(board) == 0, "the clock goes back: it was looked at"
    rooms = board.board
    board.at(HOUR + 5)
    assert overdue.look(rooms.db, rooms.ledger, rooms.catalogue, rooms.decisions) == 1
    board.at(HOUR + 5 + SOON + 5)
    assert look(board) == 1, "it is due anew"


def test_one_that_resists_holds_up_no_other(working_sqlite: OpenWorking, monkeypatch: pytest.MonkeyPatch) -> None:
    board = working_sqlite()
    reviewed(board)
    board.submit("T-2")
    board.wait("T-2", "needs_review")
    board.stop()
    broken, whole = board.task("T-1")["id"], board.board.ledger.lock

    def lock(tx: Any, task: int) -> Any:
        if task == broken:
            raise ValueError("It cannot be read.")
        return whole(tx, task)

    monkeypatch.setattr(board.board.ledger, "lock", lock)
    board.at(SOON + 5)
    assert look(board) == 1
    assert words(board) == []
    assert "review_reminder" in board.kinds("T-2")


@pytest.mark.parametrize("due", [{}, {"due": "299s"}], ids=["none", "short"])
def test_no_word_where_there_is_no_time(working_sqlite: OpenWorking, due: dict[str, str]) -> None:
    board = working_sqlite()
    board.type(use="echo", review={"when": "always"} | due)
    board.submit()
    board.wait("T-1", "needs_review")
    assert board.reviews()[0]["remind_at"] is None


def test_no_word_about_what_is_decided_and_one_more_after_an_undo(working_sqlite: OpenWorking) -> None:
    board = working_sqlite()
    reviewed(board, grace="300s")
    board.stop()
    review = board.reviews()[0]["id"]
    with board.board.db.write() as tx:
        board.board.decisions.decide(tx, review, Verdict("approve"), LI, "api")
    board.at(SOON + 5)
    assert look(board) == 0
    board.at(10)
    board.undo("T-1")
    board.at(SOON + 5)
    assert look(board) == 0, "it is due anew since the undo"
    board.at(SOON + 15)
    assert look(board) == 1
    assert len(words(board)) == 1


def test_two_leaders_say_it_once(working: OpenWorking) -> None:
    board = working()
    reviewed(board)
    board.stop()
    board.at(SOON + 5)
    said: list[int] = []
    both = [threading.Thread(target=lambda: said.append(look(board))) for _ in range(2)]
    for it in both:
        it.start()
    for it in both:
        it.join()
    assert sum(said) == 1
    assert len(words(board)) == 1


def test_it_is_found_by_its_own_index(working: OpenWorking) -> None:
    board = working()
    with board.board.db.read() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL enable_seqscan = off"))
        query = reminders._due().compile(connection, compile_kwargs={"literal_binds": True})
        explain = "EXPLAIN " if connection.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN "
        plan = "\n".join(str(row) for row in connection.execute(text(explain + str(query))))
    assert "ix_reviews_remind" in plan
