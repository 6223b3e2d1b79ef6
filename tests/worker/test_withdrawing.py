"""What cancelled tasks have left going on outside is called off, once, and what became of that is noted."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from board.effects import withdrawals
from board.ports import NeedsInput, NotSent, SentOperation, Success, UnknownOutcome, Withdrawn
from board.tasks.requeue import requeue
from board.worker.withdrawing import MOST_TRIES, Withdrawing
from tests.rig.working import CALLER, OpenWorking, Probe, WorkingBoard

FORM = {"id": "f", "title": "Ask", "content": "?", "fields": [], "actions": [{"id": "ok", "title": "OK"}]}
STOPPED = Withdrawn("It was stopped there.", over=True)


@dataclass
class Outside(Probe):
    """Work that waits outside; says what the test wants when it is called off."""

    told: list[SentOperation] = field(default_factory=list)
    answer: Callable[[], Withdrawn] = lambda: STOPPED
    connection_kind: str | None = "dify"

    def __post_init__(self) -> None:
        super().__init__(_wait_outside, _still_waits)

    async def withdraw(self, connection: Any, operation: SentOperation, options: Any, http: Any) -> Withdrawn:
        self.told.append(operation)
        return self.answer()


async def _wait_outside(job: Any) -> Any:
    await job.send(kind="trial.run", target="the trial", request=b"{}")
    await job.reference("run-1")
    return NeedsInput("It waits for a person.", FORM | {"expires_at": None}, "run-1")


async def _still_waits(job: Any, operation: Any) -> Any:
    return NeedsInput("It waits for a person.", FORM | {"expires_at": None}, "run-1")


@pytest.fixture
def outside() -> Outside:
    return Outside()


@pytest.fixture
def board(working: OpenWorking, outside: Outside, monkeypatch: pytest.MonkeyPatch) -> WorkingBoard:
    """A task that waits for a person, and no worker any more."""
    monkeypatch.setattr(withdrawals, "FIRST_LOOK", 0.0)
    board = working(outside)
    board.apply(connections=[{"name": "there", "kind": "dify", "url": "http://127.0.0.1:9/", "key": "app-0123"}])
    board.type(handler={"connection": "there"}, review={"grace": "60s"})
    board.submit()
    board.wait("T-1", "needs_review")
    board.stop()
    return board


def look(board: WorkingBoard) -> None:
    it = board.board
    Withdrawing(it.db, it.catalogue, it.handlers, ["127.0.0.1"]).look()


def test_who_is_cancelled_with_a_form_open_is_called_off_once(board: WorkingBoard, outside: Outside) -> None:
    """B025"""
    look(board)
    assert outside.told == []  # it still waits
    board.cancel("T-1")
    look(board)
    look(board)
    [told] = outside.told
    assert (told.reference, told.user.startswith("board:")) == ("run-1", True)
    assert board.events()[-1]["kind"] == "call_withdrawn"
    assert board.events()[-1]["note"] == "It was stopped there."
    [operation] = board.operations()
    assert (operation["status"], operation["last_error"]) == ("rejected", "It was stopped there.")


def test_what_still_goes_on_stays_of_unknown_outcome(board: WorkingBoard, outside: Outside) -> None:
    outside.answer = lambda: Withdrawn("It said yes and goes on.")
    board.cancel("T-1")
    look(board)
    assert board.operations()[0]["status"] == "unknown"
    assert board.events()[-1]["note"] == "It said yes and goes on."


def test_a_rejection_is_told_once_it_cannot_be_undone_any_more(board: WorkingBoard, outside: Outside) -> None:
    board.decide("T-1", "reject")
    look(board)
    assert outside.told == []
    board.undo("T-1")
    board.at(61)
    look(board)
    assert outside.told == []  # it waits for a person again
    board.decide("T-1", "reject")
    look(board)
    assert outside.told == []
    board.at(130)
    look(board)
    assert len(outside.told) == 1


def test_a_task_that_was_put_back_meanwhile_is_not_touched(board: WorkingBoard, outside: Outside) -> None:
    board.cancel("T-1")
    with board.board.db.write() as tx:
        requeue(tx, board.board.ledger, board.board.catalogue, board.task()["id"], CALLER)
    look(board)
    assert outside.told == []


def test_who_cannot_be_reached_is_asked_again_and_in_the_end_that_is_noted(
    board: WorkingBoard, outside: Outside
) -> None:
    def away() -> Withdrawn:
        raise NotSent("nobody listens")

    outside.answer = away
    board.cancel("T-1")
    for number in range(MOST_TRIES + 2):
        board.at(10_000 * number)
        look(board)
    assert len(outside.told) == MOST_TRIES
    [noted] = [event for event in board.events() if event["kind"] == "call_withdrawn"]
    assert noted["note"] == "It could not be called off: “there” was not reached (nobody listens)."


def test_a_handler_that_breaks_spoils_nothing(
    board: WorkingBoard, outside: Outside, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Withdrawn:
        raise ValueError("oops")

    outside.answer = broken
    board.cancel("T-1")
    look(board)
    look(board)
    assert len(outside.told) == 1
    assert board.events()[-1]["note"] == "It could not be called off: ValueError. The log has the details."


def test_a_handler_that_calls_nothing_off_is_let_be(working: OpenWorking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(withdrawals, "FIRST_LOOK", 0.0)

    async def unknown(job: Any) -> Any:
        await job.send(kind="trial.run", target="the trial", request=b"{}")
        return UnknownOutcome("Nobody knows.")

    board = working(Probe(unknown))
    board.type(handler={"side_effects": True})
    board.submit()
    board.wait("T-1", "needs_review")
    board.stop()
    board.cancel("T-1")
    look(board)
    assert "call_withdrawn" not in board.kinds()
    with board.board.db.read() as connection:
        assert withdrawals.due(connection) == []


def test_what_has_worked_is_never_called_off(working: OpenWorking, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its call is closed: there is nothing left outside."""
    monkeypatch.setattr(withdrawals, "FIRST_LOOK", 0.0)

    async def judged(job: Any) -> Any:
        await job.send(kind="trial.run", target="the trial", request=b"{}")
        return Success({"label": "hot"})

    board = working(Probe(judged))
    board.type(review={"when": "always"})
    board.submit()
    board.wait("T-1", "needs_review")
    board.stop()
    board.cancel("T-1")
    with board.board.db.read() as connection:
        assert withdrawals.due(connection) == []
