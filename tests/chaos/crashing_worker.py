"""A worker that kills itself with SIGKILL at one chosen point of its first attempt in one phase.

Run as a script, `crashing_worker.py POINT PHASE`, with its settings in BOARD_*. The product has no hook for this: the
process wraps the functions between which the point lies.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from board import logs, settings
from board.effects import calls, deliver, fan_out, operations
from board.effects.deliver import Outbox
from board.effects.scribe import Scribe
from board.rooms import open_board
from board.serve import serve_consumer
from board.worker.ending import Ended
from board.worker.endings import Endings
from board.worker.job import AttemptJob
from integrations.dify.live import LiveRun
from integrations.mail import action as mail

# In the order in which an attempt comes to them.
POINTS = (
    "before_reserve",  # nothing is written, nothing is sent
    "after_reserve",  # the operation is committed as sent; the call has not left
    "after_send",  # the other side has the call and has begun to answer; nothing of the answer is kept
    "after_reference",  # what the other side said first is kept (Dify's run id, a mail server's "taken"); no more
    "before_close",  # the whole answer is known to this process alone
    "in_close",  # the move is made, its transaction is not committed
    "after_close",  # all is committed
)

# The same for word to the caller, from the end of the task on.
OUTBOX_POINTS = (
    "noted",  # the task has ended; what its caller is told is noted, and not written out
    "in_writing",  # written out, its transaction is not committed
    "written_out",  # written out, nobody has taken it
    "taken",  # marked as sent; the call has not left
    "told",  # the caller has the call and has answered; nothing of that is kept
    "before_record",  # the answer is known to this process alone
    "in_record",  # it is written, its transaction is not committed
    "after_record",  # all is committed
)

# And for word to a subscription, which is written out in a way of its own and sent in the same.
SUBSCRIPTION_POINTS = ("announced", "in_fan_out", "told", "in_record")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(function: Callable[..., Any], when: Callable[..., bool] = lambda *_: True) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        if when(*arguments):
            die()
        return function(*arguments, **named)

    return wrapped


def after(function: Callable[..., Any], when: Callable[..., bool]) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        answer = function(*arguments, **named)
        if when(*arguments):
            die()
        return answer

    return wrapped


def awaited(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def wrapped(*arguments: Any, **named: Any) -> Any:
        answer = await function(*arguments, **named)
        die()
        return answer

    return wrapped


def arm(point: str, phase: str) -> None:
    """Lay the mine."""

    def in_phase(endings: Endings, ended: Sequence[Ended]) -> bool:
        return any(it.row["phase"] == phase for it in ended)

    patched: dict[str, list[tuple[Any, str, Callable[..., Any]]]] = {
        "before_reserve": [(operations, "send", before(operations.send))],
        "after_reserve": [(AttemptJob, "send", awaited(AttemptJob.send))],
        # The answer of a webhook or a mail server as a whole, or the beginning of Dify's stream.
        "after_send": [
            (calls, "post", awaited(calls.post)),
            (LiveRun, "watch", before(LiveRun.watch)),
            (mail, "hand_over", awaited(mail.hand_over)),
        ],
        "after_reference": [(AttemptJob, "reference", awaited(AttemptJob.reference))],
        "before_close": [(Endings, "write", before(Endings.write, in_phase))],
        "in_close": [
            (operations, "close", before(operations.close)),
            (operations, "close_many", before(operations.close_many, lambda _, closed: bool(closed))),
        ],
        "after_close": [(Endings, "write", after(Endings.write, in_phase))],
        "announced": [(fan_out, "write_some", before(fan_out.write_some))],
        "in_fan_out": [(fan_out, "write_some", after(fan_out.write_some, lambda *_: True))],
        "noted": [(Scribe, "write_some", before(Scribe.write_some))],
        "in_writing": [(Scribe, "write_some", after(Scribe.write_some, lambda *_: True))],
        "written_out": [(deliver, "_taken", before(deliver._taken))],
        "taken": [(Outbox, "send", before(Outbox.send))],
        "told": [(deliver, "post", awaited(deliver.post))],
        "before_record": [(Outbox, "record", before(Outbox.record))],
        "in_record": [(deliver, "log_deliveries", after(deliver.log_deliveries, lambda *_: True))],
        "after_record": [(Outbox, "record", after(Outbox.record, lambda *_: True))],
    }
    for owner, name, mine in patched[point]:
        setattr(owner, name, mine)


def main() -> None:
    loaded = settings.load()
    logs.set_up(loaded.log_format)
    arm(*sys.argv[1:3])
    board = open_board(loaded)
    board.make_consumer()
    print("ready", flush=True)
    serve_consumer(board)


if __name__ == "__main__":
    main()
