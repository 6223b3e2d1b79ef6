"""Workers killed around the sending of a callback: it goes out again, under the same id, with the same bytes."""

import socket
from collections.abc import Iterator

import pytest
from sqlalchemy import update

from board.db.clock import now
from board.effects.models import operations
from board.effects.scribe import TAKEN_SECONDS
from tests.effects.verify import verified
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import OpenWorking, WorkingBoard
from tests.worker.conftest import StartWorker


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    board = working(start=False)
    board.type("echo", use="echo")
    return board


@pytest.fixture
def deaf() -> Iterator[socket.socket]:
    """A port at which somebody listens and nobody reads: a call to it is never received."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def a_minute_later(board: WorkingBoard) -> None:
    """What a dead worker had taken is due again; the clock of other processes cannot be set."""
    [operation] = board.operations()
    with board.board.db.write() as tx:
        left = operation["next_try_at"] - operation["sent_at"]
        assert left.total_seconds() == pytest.approx(TAKEN_SECONDS, abs=1)
        tx.execute(update(operations).values(next_try_at=now()))


def test_killed_after_the_receiver_has_it(board: WorkingBoard, worker: StartWorker, receiver: Receiver) -> None:
    """B081: received, not answered."""
    receiver.reply(Reply(hang=True))
    board.submit(type="echo", callback_url=f"{receiver.url}/hook")
    first = worker()
    receiver.wait_for(1, timeout=30)
    first.kill()
    assert (board.operations()[0]["status"], board.operations()[0]["tries"]) == ("sent", 1)
    a_minute_later(board)
    worker()
    one, two = receiver.wait_for(2, timeout=30)
    board.until(lambda: board.operations()[0]["status"] == "confirmed")
    assert one.headers["webhook-id"] == two.headers["webhook-id"]
    assert one.body == two.body
    assert verified(two, board.board.webhook_secret)
    assert len(receiver.requests) == 2
    assert board.kinds().count("done") == 1


def test_killed_before_the_receiver_has_it(
    board: WorkingBoard, worker: StartWorker, receiver: Receiver, deaf: socket.socket
) -> None:
    """B081: taken from the outbox, and the process is gone before anybody has read a byte."""
    board.submit(type="echo", callback_url=f"http://127.0.0.1:{deaf.getsockname()[1]}/hook")
    first = worker()
    board.until(lambda: bool(board.operations()) and board.operations()[0]["tries"] == 1, timeout=30)
    first.kill()
    body = board.operations()[0]["body"]
    with board.board.db.write() as tx:  # the same address, where somebody reads now
        tx.execute(update(operations).values(url=f"{receiver.url}/hook"))
    a_minute_later(board)
    worker()
    [request] = receiver.wait_for(1, timeout=30)
    board.until(lambda: board.operations()[0]["status"] == "confirmed")
    assert request.body.decode() == body
    assert board.operations()[0]["tries"] == 2
    assert board.kinds().count("done") == 1
