"""The owner of a type: whose task it becomes where nobody has it, and who hears that nobody has decided."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from board.access import groups, users
from board.access.rights import Role
from board.catalogue.apply import BadCatalogue
from board.db.clock import read_now
from board.ports import Cause, ErrorClass, Failure, Job, Outcome, Success, UnknownOutcome
from board.review import overdue
from board.tasks.history import TIMER
from tests.rig.working import OpenWorking, Probe, WorkingBoard

HOUR = 3600.0


async def fails(job: Job) -> Outcome:
    return Failure(ErrorClass.PERMANENT, Cause.BAD_OUTPUT, "It is broken.")


async def nobody_knows(job: Job) -> Outcome:
    await job.send(kind="probe", target="somebody", request=b"{}")
    return UnknownOutcome("Nobody can tell.")


def assigned(board: WorkingBoard) -> list[dict[str, Any]]:
    return [event["data"]["assignee"] for event in board.events() if event["kind"] == "assigned"]


@pytest.mark.parametrize(("run", "status"), [(fails, "failed"), (nobody_knows, "needs_review")])
def test_what_is_stuck_becomes_the_owners(working: OpenWorking, run: Any, status: str) -> None:
    board = working(Probe(run, side_effects=True))
    board.type(owner="Li@Example.org")
    board.submit()
    row = board.wait("T-1", status)
    assert row["assignee"] == "li@example.org"
    assert assigned(board) == [{"from": None, "to": "li@example.org"}]
    [event] = [event for event in board.events() if event["kind"] == "assigned"]
    assert (event["actor_kind"], event["actor_name"]) == ("timer", "board")
    assert row["version"] > 1


def test_many_that_fail_together_become_the_owners_each(working: OpenWorking) -> None:
    board = working(Probe(fails))
    board.stop()
    board.type(owner="sales")
    for number in range(5):
        board.submit(f"T-{number}")
    board.start()
    assert [board.wait(f"T-{number}", "failed")["assignee"] for number in range(5)] == ["sales"] * 5


def test_whoever_has_it_keeps_it(working_sqlite: OpenWorking) -> None:
    board = working_sqlite(Probe(fails))
    board.type(owner="sales", retry={"on_permanent": "needs_review"})
    board.stop()
    board.submit()
    with board.board.db.write() as tx:
        row = board.board.ledger.lock(tx, board.task()["id"])
        board.board.ledger.edit(tx, row, TIMER, changes={"assignee": "wang@example.org"}, data={}, details=None)
    board.type(owner="sales")
    board.start()
    assert board.wait("T-1", "failed", "needs_review")["assignee"] == "wang@example.org"


def test_what_ends_well_is_nobodys(working_sqlite: OpenWorking) -> None:
    async def works(job: Job) -> Outcome:
        return Success({})

    board = working_sqlite(Probe(works))
    board.type(owner="sales")
    board.submit()
    assert board.wait("T-1", "done")["assignee"] is None
    with board.board.db.read() as connection:
        document = board.board.task_document(connection, board.task())
    assert document["owner"] == "sales"


def test_a_review_that_nobody_decides_goes_to_the_owner_and_is_due_anew(working: OpenWorking) -> None:
    board = working()
    board.type(use="echo", owner="sales", review={"when": "always", "due": "1h"})
    board.submit()
    board.wait("T-1", "needs_review")
    first = board.reviews()[0]["due_at"]
    board.at(HOUR + 1)
    look(board)
    board.until(lambda: board.task()["assignee"] == "sales")
    [event] = [event for event in board.events() if event["kind"] == "review_overdue"]
    assert event["data"]["to"] == ["sales"]
    [review] = board.reviews()
    assert review["status"] == "open"
    assert review["due_at"] > first
    assert review["remind_at"] is not None


def test_without_an_owner_every_owner_of_the_board_is_named(working: OpenWorking) -> None:
    board = working()
    with board.board.db.write() as tx:
        users.add(tx, "b@example.org", Role.OWNER)
        users.add(tx, "a@example.org", Role.OWNER)
        users.add(tx, "c@example.org", Role.REVIEWER)
        groups.add(tx, "sales")
    board.type(use="echo", review={"when": "always", "due": "1h"})
    board.submit()
    board.wait("T-1", "needs_review")
    board.at(HOUR + 1)
    look(board)
    board.until(lambda: "review_overdue" in board.kinds())
    [event] = [event for event in board.events() if event["kind"] == "review_overdue"]
    assert event["data"]["to"] == ["a@example.org", "b@example.org"]
    assert board.task()["assignee"] is None


def test_a_missed_deadline_names_the_owner(working: OpenWorking) -> None:
    board = working(start=False)
    board.type(use="echo", owner="sales")
    with board.board.db.read() as connection:
        deadline = (read_now(connection) + timedelta(seconds=60)).isoformat()
    board.submit(deadline_at=deadline)
    board.at(61)
    keeper = board.board.make_consumer()._keeper
    [chore] = [chore for chore in keeper.chores if chore.what == "look at deadlines"]
    keeper.do(keeper.chores[0])
    keeper.do(chore)
    [event] = [event for event in board.events() if event["kind"] == "deadline_missed"]
    assert event["data"]["owner"] == "sales"
    assert datetime.fromisoformat(event["data"]["deadline_at"]) == board.task()["deadline_at"]


def look(board: WorkingBoard) -> None:
    rooms = board.board
    overdue.look(rooms.db, rooms.ledger, rooms.catalogue, rooms.decisions)


@pytest.mark.parametrize("owner", ["", "two words", "a@b c", "@", "x" * 201 + "@example.org", "key:n8n"])
def test_what_is_no_owner_is_refused(working_sqlite: OpenWorking, owner: str) -> None:
    board = working_sqlite()
    with pytest.raises(BadCatalogue, match="mail address"):
        board.type(use="echo", owner=owner)
