"""What a worker has in its hands: claimed and waiting for a slot, with its handler, or over and being written."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import RowMapping

from board.logs import first_line
from board.tasks.history import By
from board.tasks.ledger import Lease
from board.worker.ahead import Ahead
from board.worker.begun import Begun
from board.worker.ending import Ended
from board.worker.preparing import Prepared
from board.worker.run import ENDINGS_AT_ONCE, Runner
from board.worker.slots import Slots

log = logging.getLogger(__name__)

# Attempts that are over and not written yet. With more of them the database is behind, and gets no further work.
MOST_UNWRITTEN = 2 * ENDINGS_AT_ONCE
# What still waits for a slot this long, in seconds, after it was looked for is handed back: others may have one.
LATE_SECONDS = 0.05
# Attempts that end at once follow on each other for so long, in seconds, until the loop does something else.
BREATH_SECONDS = 0.005

Claimed = tuple[RowMapping, Prepared | Exception]


@dataclass(frozen=True, slots=True)
class Room:
    """What may be claimed now. free: slots; rest: how many of these are not kept for P0; ahead: tasks beyond them."""

    free: int
    rest: int
    ahead: int


class Holding:
    """A slot is taken from the begin of an attempt until its handler is through; the lease is held until all of it is
    written. On the handlers' loop, but for `room`, `hold`, `leases` and `cancel`.

    One asyncio task begins one attempt after the other (`_work_off`). The first that waits for something keeps this
    task for itself, and another one goes on with the rest. So an attempt that ends at once needs no task of its own.

    ahead: what is known of work that is soon over. It is claimed beyond the slots: to wait here for a moment, or, where
    there are spare ones, to prepare itself. freed: called on the loop when more may be claimed.
    """

    def __init__(
        self, runner: Runner, slots: Slots, worker: str, freed: Callable[[], None], ahead: Ahead | None = None
    ) -> None:
        self.alone: Lease | None = None  # the suspect that runs: nothing is begun beside it
        self.size = slots.size
        self.ahead = ahead or Ahead(slots.size)
        self.stopping = False
        self._runner, self._slots, self._worker, self._freed = runner, slots, worker, freed
        self._held: dict[Lease, asyncio.Task[None] | None] = {}  # with the task of those that wait for something
        self._urgent, self._usual = deque[Claimed](), deque[Claimed]()  # what waits for a slot
        self._working_off: asyncio.Task[None] | None = None
        self._all_begun = asyncio.Event()  # all that there are slots for
        self._over: set[Lease] = set()  # and not written yet

    def leases(self) -> list[Lease]:
        return list(self._held)

    def begun(self) -> list[asyncio.Task[None]]:
        return [*filter(None, self._held.values())]

    def at_work(self) -> list[asyncio.Task[None]]:
        """The same without those that only wait for a callback."""
        return [it for lease, it in self._held.items() if it is not None and lease in self._slots.holders]

    @property
    def busy(self) -> bool:
        """Whether anything would suffer if this process died now, but for what only waits for a callback."""
        return bool(self._urgent or self._usual or self._over or self._slots.holders)

    def room(self) -> Room | None:
        """What may be claimed; None: nothing."""
        if self.alone is not None:
            return None
        free, rest = self._slots.free()
        if len(self._over) >= MOST_UNWRITTEN:
            return None
        waiting = len(self._urgent) + len(self._usual)
        if self._slots.spare:
            ahead = max(0, min(self.ahead.most, self._slots.free_spare()) - waiting)
        else:
            ahead = max(0, self.ahead.most - waiting) if rest > 0 else 0  # a slot must be there to work it off
        return Room(free, rest, ahead) if free + ahead > 0 else None

    def hold(self, rows: Sequence[RowMapping], room: Room, *, alone: bool) -> None:
        """From now on the heartbeat keeps these, even if the loop is blocked before they begin."""
        for row in rows:
            lease = Lease(row["id"], row["lease_token"])
            self._held[lease] = None
            if alone:
                self.alone = lease
        self.ahead.claimed(rows, room.rest + room.ahead)

    def cancel(self, lease: Lease, loop: asyncio.AbstractEventLoop, why: str | None = None) -> None:
        """Stop its handler, which hears why; from any thread. What has not begun is stopped by the next look, and what
        is over is not stopped."""

        def cancel() -> None:
            if (task := self._held.get(lease)) is not None:
                task.cancel(why)

        loop.call_soon_threadsafe(cancel)

    # -- on the handlers' loop ----------------------------------------------------------------------------------------

    async def begin(self, claimed: Sequence[Claimed]) -> None:
        """Begin what there are slots for; the rest follows as they become free. Returns when all that ends at once is
        through."""
        for it in claimed:
            (self._usual if it[0]["lane"] else self._urgent).append(it)
        self._go_on()
        await self._all_begun.wait()

    def hand_back_late(self) -> None:
        """Give back what waits for a slot and gets none: what was to end at once does not."""
        late = [*self._urgent, *self._usual]
        if late:
            asyncio.get_running_loop().call_later(LATE_SECONDS, self._hand_back, late)

    def hand_back_all(self) -> None:
        """Nothing begins any more."""
        self._hand_back([*self._urgent, *self._usual])

    def park(self, lease: Lease) -> None:
        """An attempt only waits for its callback: it keeps its lease, and its slot is free for other work."""
        if lease == self.alone:
            self.alone = None
        self._leave_slot(lease)

    # -- parts --------------------------------------------------------------------------------------------------------

    def _next(self) -> Claimed | None:
        """What there is a slot for."""
        if not self._urgent and not self._usual:
            return None
        free, rest = self._slots.free()
        if self._urgent and free > 0:
            return self._urgent.popleft()
        if self._usual and (rest > 0 or (self._slots.free_spare() > 0 and self.ahead.swift(self._usual[0][0]))):
            return self._usual.popleft()
        return None

    def _go_on(self) -> None:
        """See to it that what waits begins."""
        if self._working_off is not None:
            return
        if self._urgent or self._usual:
            self._working_off = asyncio.get_running_loop().create_task(self._work_off())
            self._all_begun.clear()
        else:
            self._all_begun.set()

    async def _work_off(self) -> None:
        me = self._working_off
        try:
            breath = time.monotonic() + BREATH_SECONDS
            while (claimed := self._next()) is not None:
                begin = time.monotonic()
                row, prepared = claimed
                lease = Lease(row["id"], row["lease_token"])
                self._slots.hold(lease, urgent=row["lane"] == 0)
                attempt = Begun(self._runner.run(row, self._worker, prepared))
                if not attempt.over:
                    self._held[lease], self._working_off = me, None
                    self._go_on()
                    ended = await attempt
                    self._held[lease] = None
                    self._through(ended, time.monotonic() - begin)
                    return
                moment = time.monotonic()
                self._through(attempt.result, moment - begin)
                if moment > breath:
                    await asyncio.sleep(0)
                    breath = time.monotonic() + BREATH_SECONDS
        finally:
            if self._working_off is me:
                self._working_off = None
                self._all_begun.set()

    def _through(self, ended: Ended, seconds: float) -> None:
        """Its handler needs no slot any more."""
        self.ahead.learn(ended.row, seconds, ended.outcome)
        self._leave_slot(ended.lease)
        self._settle(ended)

    def _leave_slot(self, lease: Lease) -> None:
        self._slots.release(lease)
        self._go_on()
        self._freed()

    def _settle(self, ended: Ended) -> None:
        self._over.add(ended.lease)
        self._runner.settle(ended, partial(self._settled, ended.lease))

    def _settled(self, lease: Lease, error: Exception | None) -> None:
        self._held.pop(lease, None)
        self._over.discard(lease)
        if lease == self.alone:
            self.alone = None
        if error is not None and not self.stopping:
            # Most likely the database was away when the result was to be written; the sweep brings the task back.
            log.error("an attempt could not be settled: %s", first_line(error))
        self._freed()

    def _hand_back(self, claimed: Sequence[Claimed]) -> None:
        by = By("worker", self._worker, "worker")
        for it in claimed:
            row = it[0]
            line = self._usual if row["lane"] else self._urgent
            if it in line:
                line.remove(it)
                self._settle(Ended(row, Lease(row["id"], row["lease_token"]), by, None))
