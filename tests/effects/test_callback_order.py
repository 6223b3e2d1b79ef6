"""The events of one task reach one address in their order; nobody else waits for them."""

import json

import pytest

from board.effects import backoff, scribe
from tests.effects.told import DAY, confirmed, echo, events
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import OpenWorking

TWO = {"events": ["needs_review", "done", "failed", "cancelled"]}


def seqs(receiver: Receiver) -> list[int]:
    return [json.loads(request.body)["seq"] for request in receiver.requests]


def test_an_earlier_event_is_never_overtaken(
    working: OpenWorking, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B083: `needs_review` fails and comes again; `done`, which is ready meanwhile, leaves after it."""
    monkeypatch.setattr(backoff, "BASE_SECONDS", 0.4)
    receiver.reply(Reply(status=500), Reply(status=503))
    board = working()
    echo(board, review={"when": "always", "grace": "0s"}, callback=TWO)
    board.submit(type="echo", callback_url=receiver.url)
    board.wait("T-1", "needs_review")
    receiver.wait_for(1)
    board.decide("T-1", "approve")
    board.wait("T-1", "done")
    receiver.wait_for(4)
    confirmed(board)
    assert events(receiver) == ["task.needs_review"] * 3 + ["task.done"]
    assert seqs(receiver) == sorted(seqs(receiver))
    assert all("x-board-outdated" not in request.headers for request in receiver.requests)


def test_an_outdated_event_holds_up_the_latest_for_ten_minutes(working: OpenWorking, receiver: Receiver) -> None:
    """B083: and is then given up, never sent afterwards."""
    receiver.default = Reply(status=500)
    board = working()
    echo(board, review={"when": "always", "grace": "0s"}, callback=TWO)
    board.submit(type="echo", callback_url=receiver.url)
    board.wait("T-1", "needs_review")
    board.until(lambda: len(board.deliveries()) == 1)  # its pause is written, by the clock before the jump
    board.decide("T-1", "approve")
    board.wait("T-1", "done")
    first, second = board.operations()
    assert second["after"] == first["id"]
    assert (first["give_up_at"] - second["created_at"]).total_seconds() == pytest.approx(600, abs=5)
    board.at(scribe.OUTDATED_AFTER + 5)
    board.until(lambda: len(board.deliveries()) == 3)
    first, second = board.operations()
    assert (first["status"], second["after"]) == ("rejected", None)
    assert first["last_error"].startswith("Given up after 2 tries")
    receiver.default = Reply()
    board.at(DAY)
    board.until(lambda: board.operations()[1]["status"] == "confirmed")
    assert events(receiver)[-1] == "task.done"
    assert events(receiver).index("task.done") == 2


def test_an_event_that_waits_long_is_tried_at_once_when_the_next_one_comes(
    working: OpenWorking, receiver: Receiver
) -> None:
    receiver.reply(Reply(status=503, headers={"Retry-After": "3000"}))
    board = working()
    echo(board, review={"when": "always", "grace": "0s"}, callback=TWO)
    board.submit(type="echo", callback_url=receiver.url)
    board.wait("T-1", "needs_review")
    board.until(lambda: len(board.deliveries()) == 1)
    board.decide("T-1", "approve")
    receiver.wait_for(3)
    confirmed(board)
    assert events(receiver) == ["task.needs_review", "task.needs_review", "task.done"]


def test_other_tasks_and_other_addresses_wait_for_nobody(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    echo(board, review={"when": "always", "grace": "0s"}, callback=TWO)
    receiver.reply(Reply(status=500))
    board.submit("T-1", type="echo", callback_url=f"{receiver.url}/1")
    board.until(lambda: len(board.deliveries()) == 1)
    board.submit("T-2", type="echo", callback_url=f"{receiver.url}/2")
    board.until(lambda: len(board.deliveries()) == 2)
    assert [it["outcome"] for it in board.deliveries()] == ["unknown", "confirmed"]
    assert [it["after"] for it in board.operations("T-2")] == [None]
