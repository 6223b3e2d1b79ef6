"""A decision counts for what was shown, and a correction changes nothing of what has already happened."""

import pytest

from board.access.rights import person_actor
from board.ports import Job, Outcome, Success, UnknownOutcome
from board.review import read
from board.review.decide import DecisionRefused
from board.tasks.edit import TaskEdit
from board.tasks.edit import apply as edit
from tests.rig.receiver import Receiver
from tests.rig.working import CALLER, LI, OpenWorking, Probe, WorkingBoard

ANNA = person_actor("anna@example.org", "reviewer")


def shown(board: WorkingBoard) -> str:
    with board.board.db.read() as connection:
        row = board.reviews()[-1]
        return str(read.document(connection, board.board.catalogue, row, board.task(), {}, LI)["content_hash"])


def test_another_address_is_another_content(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    hook = {"name": "hook", "kind": "webhook"}
    board.apply(connections=[hook | {"url": f"{receiver.url}/first"}])
    action = {"use": "webhook", "connection": "hook"}
    board.type("echo", use="echo", review={"when": "always", "grace": "60s"}, action=action)
    board.submit(type="echo")
    board.wait("T-1", "needs_review")
    first = shown(board)
    board.apply(connections=[hook | {"url": f"{receiver.url}/second"}])
    with pytest.raises(DecisionRefused) as error:
        board.decide("T-1", "approve", version=1, content_hash=first)
    assert error.value.code == "review_changed"
    assert error.value.details[0]["content_hash"] == shown(board) != first
    board.decide("T-1", "approve", version=1, content_hash=shown(board))
    assert board.task()["status"] == "pending"
    assert board.reviews()[-1]["content_hash"] == shown(board)


def test_an_approval_of_one_address_is_none_of_another(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    hook = {"name": "hook", "kind": "webhook"}
    board.apply(connections=[hook | {"url": f"{receiver.url}/first"}])
    review = {"when": "always", "grace": "60s", "approvals": 2}
    board.type("echo", use="echo", review=review, action={"use": "webhook", "connection": "hook"})
    board.submit(type="echo")
    board.wait("T-1", "needs_review")
    board.decide("T-1", "approve", LI)
    board.apply(connections=[hook | {"url": f"{receiver.url}/second"}])
    board.decide("T-1", "approve", ANNA)
    assert board.task()["status"] == "needs_review"
    assert board.decide("T-1", "approve", LI) is False  # not a repeat: it is about something else
    assert board.task()["status"] == "pending"
    assert board.kinds().count("approval_given") == 2


async def acts_and_is_lost(job: Job) -> Outcome:
    return Success({"text": "done"}) if job.phase == "work" else UnknownOutcome("The answer was lost.")


def test_an_action_that_happened_is_not_done_again_because_the_payload_was_corrected(working: OpenWorking) -> None:
    probe = Probe(acts_and_is_lost, acts_and_is_lost, side_effects=True)
    board = working(probe)
    board.type("trial", action={"use": "probe"})
    board.submit(payload={"text": "one"})
    board.wait("T-1", "needs_review")
    rooms, seen = board.board, len(probe.seen)
    with rooms.db.write() as tx:
        change = TaskEdit(version=board.task()["version"], payload={"text": "two"})
        changed = rooms.visits.task_edited
        edit(tx, rooms.ledger, rooms.catalogue, rooms.files, changed, board.task()["id"], change, CALLER)
    assert board.task()["phase"] == "act"
    board.decide("T-1", "happened", reason="I have seen it there.")
    board.wait("T-1", "done")
    assert len(probe.seen) == seen
