"""What counts as a decision about a suggestion, and as an objection to it."""

from datetime import timedelta

import pytest

from board.access.rights import key_actor
from board.db.clock import read_now
from board.ports import Job, Outcome, Success
from board.review import overdue, quality
from board.review.quality import Quality
from tests.rig.working import OpenWorking, Probe, WorkingBoard

JUDGED = {"verdict": "verdict"}


async def propose(job: Job) -> Outcome:
    return Success({"verdict": job.payload.get("verdict"), "reply": "Hello."})


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    board = working(Probe(propose))
    review = {"when": "always", "editable": ["reply"], "grace": "1m"}
    board.type("letter", handler={"judgement": JUDGED}, review=review)
    board.type("sampled", handler={"judgement": JUDGED}, review={"sample": 100, "editable": ["reply"]})
    board.type("direct", "none")
    return board


def decided(
    board: WorkingBoard, task_id: str, verdict: str, type: str = "letter", proposed: str = "", **more: object
) -> None:
    board.submit(task_id, type, payload={"verdict": proposed or None})
    board.wait(task_id, "needs_review")
    board.decide(task_id, verdict, **more)


def figures(board: WorkingBoard, *types: str, ago: float = 0.0) -> dict[str, Quality]:
    with board.board.db.read() as connection:
        end = read_now(connection) + timedelta(seconds=1 - ago)
        return quality.by_type(connection, end - timedelta(days=1), end, types)


def test_every_way_of_deciding_is_counted_as_what_it_is(board: WorkingBoard) -> None:
    decided(board, "T-1", "approve", proposed="approve")
    decided(board, "T-2", "approve", proposed="approve", edits={"reply": "Dear Li,"})
    decided(board, "T-3", "reject", proposed="approve")
    decided(board, "T-4", "revise", proposed="reject", instruction="Shorter.")
    decided(board, "T-5", "approve")
    decided(board, "D-1", "approve", "direct")
    found = figures(board)
    assert found == {
        "letter": Quality(decisions=5, edited=1, revised=1, rejected=1, proposed=4, agreed=2, sampled=0, disagreed=0)
    }
    it = found["letter"]
    assert (it.overridden, it.override_rate, it.agreement) == (3, 0.6, 0.5)
    assert (it.disagreed_rate, it.disagreed_interval) == (None, None)


def test_samples_are_counted_with_what_was_wrong_in_them(board: WorkingBoard) -> None:
    decided(board, "S-1", "approve", "sampled")
    decided(board, "S-2", "approve", "sampled", edits={"reply": "Dear Li,"})
    decided(board, "S-3", "reject", "sampled")
    it = figures(board)["sampled"]
    assert (it.sampled, it.disagreed, it.decisions) == (3, 2, 3)
    low, high = it.disagreed_interval or (0, 0)
    assert (round(low, 2), round(high, 2)) == (0.21, 0.94)


def test_what_is_undone_or_of_another_time_does_not_count(board: WorkingBoard) -> None:
    decided(board, "T-1", "approve", edits={"reply": "Dear Li,"})
    assert figures(board)["letter"].edited == 1
    board.undo("T-1")
    assert figures(board) == {}
    board.decide("T-1", "approve", key_actor("li", ["review"]))
    assert figures(board)["letter"] == Quality(decisions=1), "the changes were undone, too"
    assert figures(board, ago=3600) == {}
    assert figures(board, "sampled") == {}


def test_the_clock_is_no_reviewer(board: WorkingBoard) -> None:
    board.type("soon", "echo", review={"when": "always", "due": "1s", "on_expire": "approve"})
    board.submit("C-1", "soon")
    board.wait("C-1", "needs_review")
    board.at(10)
    rooms = board.board
    overdue.look(rooms.db, rooms.ledger, rooms.catalogue, rooms.decisions)
    assert board.reviews("C-1")[-1]["verdict"] == "approve"
    assert figures(board, ago=-10) == {}


def test_two_types_add_up(board: WorkingBoard) -> None:
    decided(board, "T-1", "approve")
    decided(board, "S-1", "reject", "sampled")
    assert quality.together(figures(board).values()) == Quality(decisions=2, rejected=1, sampled=1, disagreed=1)
    assert list(figures(board)) == ["letter", "sampled"]
