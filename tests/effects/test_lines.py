"""How many calls go to one receiver at a time, and how seldom the database is asked for them."""

import asyncio
from collections.abc import Callable

import pytest

from board.effects.deliver import Outbox, Taken
from board.effects.http import Doors
from board.effects.lines import AHEAD, FIRST, MOST, QUICK, SLOW, Lines
from board.effects.sender import Sender
from board.patience import Patience
from tests.rig.receiver import Receiver
from tests.rig.working import OpenWorking

ROWS = 200


def test_each_quick_answer_earns_a_line_and_a_slow_one_costs_all_but_one() -> None:
    lines = Lines()
    assert (lines.limit, lines.room) == (FIRST, FIRST)
    for _ in range(MOST):
        lines.learn(QUICK / 2, answered=True)
    assert (lines.limit, lines.room) == (MOST, MOST + AHEAD)
    lines.learn(QUICK / 2, answered=False)
    assert lines.limit == MOST
    lines.learn(SLOW * 2, answered=True)
    assert lines.limit == 1


def test_what_is_earned_is_kept_while_there_may_be_more() -> None:
    lines = Lines(more=True)
    assert not lines.idle
    lines.more = False
    assert lines.idle


def test_a_quick_receiver_is_looked_for_seldom(
    working: OpenWorking, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every look costs a transaction: they must be few for many rows."""
    board = working(start=False)
    board.type("echo", use="echo")
    for number in range(ROWS):
        board.submit(f"T-{number}", type="echo", callback_url=f"{receiver.url}/{number}")
        board.cancel(f"T-{number}")
    looks: list[int] = []
    take = Outbox.take

    def counted(outbox: Outbox, room: Callable[[str], int]) -> Taken:
        found = take(outbox, room)
        looks.append(len(found.rows))
        return found

    monkeypatch.setattr(Outbox, "take", counted)

    async def deliver() -> None:
        doors = Doors(["127.0.0.1"])
        sender = Sender(Outbox(board.board.db, board.board.catalogue, board.board.scribe, "secret"), doors, Patience())
        sending = asyncio.create_task(sender.keep_sending())
        sender.wanted.set()
        await asyncio.to_thread(receiver.wait_for, ROWS, 60.0)
        while sender.sending:
            await asyncio.gather(*sender.sending)
        sending.cancel()
        await doors.close()

    asyncio.run(deliver())
    assert sorted({request.path for request in receiver.requests}) == sorted(f"/{number}" for number in range(ROWS))
    assert (len(receiver.requests), sum(looks)) == (ROWS, ROWS)
    assert len(looks) < ROWS / 4
    assert {operation["status"] for n in range(0, ROWS, 20) for operation in board.operations(f"T-{n}")} == {
        "confirmed"
    }
