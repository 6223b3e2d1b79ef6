"""Attempts that wait for their callback, in one worker process: woken when it has come, and found by looking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from board.db.engine import Database
from board.effects import incoming
from board.ports import CalledBack
from board.tasks.ledger import Lease

# Attempts that give their slot to other work while they wait; more keep it, so that a worker does not take in
# everything there is. Their leases are renewed in one statement.
MOST_PARKED = 1000
LOOKED_AT_ONCE = 500


class Mailbox:
    """`park`: told on the event loop that an attempt only waits from now on, and needs no slot."""

    def __init__(self, db: Database) -> None:
        self.park: Callable[[Lease], None] = lambda _: None
        self._db = db
        self._waiting: dict[Lease, asyncio.Future[CalledBack]] = {}  # changed on the event loop only

    async def wait(self, lease: Lease, within: float) -> CalledBack | None:
        """The callback for this attempt's task; None when none comes within so many seconds. 0: only look."""
        answer: asyncio.Future[CalledBack] = asyncio.get_running_loop().create_future()
        self._waiting[lease] = answer
        try:
            await asyncio.to_thread(self._look, {lease: answer})  # it may have come before anybody waited
            if within > 0 and not answer.done():
                if len(self._waiting) <= MOST_PARKED:
                    self.park(lease)
                await asyncio.wait([answer], timeout=within)
                if not answer.done():  # a last look: what came in this moment was confirmed to whoever called
                    await asyncio.to_thread(self._look, {lease: answer})
            return answer.result() if answer.done() else None
        finally:
            del self._waiting[lease]

    def look(self) -> None:
        """Hand out what has come for those who wait. Called from any thread."""
        self._look(dict(self._waiting))

    def _look(self, waiting: dict[Lease, asyncio.Future[CalledBack]]) -> None:
        tasks = sorted({lease.task for lease in waiting})
        found: dict[int, CalledBack] = {}
        for begin in range(0, len(tasks), LOOKED_AT_ONCE):
            with self._db.read() as connection:
                found |= incoming.answers(connection, tasks[begin : begin + LOOKED_AT_ONCE])
        for lease, answer in waiting.items():
            if lease.task in found:
                with suppress(RuntimeError):  # the worker has just stopped: the next one finds it
                    answer.get_loop().call_soon_threadsafe(_hand, answer, found[lease.task])


def _hand(answer: asyncio.Future[CalledBack], came: CalledBack) -> None:
    if not answer.done():
        answer.set_result(came)
