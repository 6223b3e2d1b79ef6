"""Sends what the outbox holds. Each receiver has a few lines of its own, so one that hangs never delays another."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter

from board.effects.deliver import RECEIVERS, Due, Outbox, Sent
from board.effects.http import Doors
from board.effects.lines import FIRST, Lines
from board.logs import first_line
from board.patience import Patience

log = logging.getLogger(__name__)

MOST = 200  # calls at the same time to all receivers; a hundred that hang, all at once, fill them
# A row that was taken in advance and had no turn in this time is left for the next take; seconds, well below
# TAKEN_SECONDS, so that nobody else sends it meanwhile.
STALE = 15.0
# What came of calls is written together: nobody waits for it, and a commit for each call would cost more than the call.
GATHER_SECONDS = 0.1
REMEMBERED = 1000  # receivers whose slowness is kept in mind while there is nothing to send


class Sender:
    """One per worker process; everything runs on the event loop. `wanted`: set it when a callback may be due."""

    def __init__(self, outbox: Outbox, doors: Doors, patience: Patience) -> None:
        self.wanted = asyncio.Event()
        self.sending: set[asyncio.Task[None]] = set()
        self._outbox, self._doors, self._patience = outbox, doors, patience
        self._sent: list[Sent] = []  # not yet written
        self._recording: asyncio.Task[None] | None = None
        self._lines: dict[str, Lines] = {}
        self._calling = 0
        self._stopping = False

    async def keep_sending(self) -> None:
        """Send whatever is due, whenever that is asked for, until cancelled."""
        while True:
            await self.wanted.wait()
            self.wanted.clear()
            try:
                await self._take()
            except Exception as error:
                self._patience.failed("look for callbacks", error)
            else:
                self._patience.worked("look for callbacks")
            self._fill()

    def stop(self) -> None:
        """Begin no further call: what was taken in advance is left to others."""
        self._stopping = True

    async def recorded(self) -> None:
        """Once it is written what came of the calls that have ended."""
        if self._recording is not None:
            await self._recording

    async def _take(self) -> None:
        """Take what is due, as far as there is room for it."""
        free = MOST - self._calling
        room = {receiver: min(free, lines.room) for receiver, lines in self._lines.items()}
        found = await asyncio.to_thread(self._outbox.take, lambda name: room.get(name, min(free, FIRST)))
        moment, taken = time.monotonic(), Counter(due.receiver for due in found.rows)
        for due in found.rows:
            self._lines.setdefault(due.receiver, Lines()).ahead.append((due, moment))
        for receiver, lines in self._lines.items():
            if (asked := room.get(receiver, FIRST)) > 0:
                lines.more = taken[receiver] >= asked
        if found.more or len(taken) == RECEIVERS:
            self.wanted.set()

    def _fill(self) -> None:
        """Begin what was taken, as far as lines are free; ask for more in time."""
        if self._stopping:
            return
        moment = time.monotonic()
        for receiver, lines in list(self._lines.items()):
            while lines.ahead and lines.free and self._calling < MOST:
                due, taken = lines.ahead.popleft()
                if moment - taken <= STALE:
                    self._begin(due, lines)
            if lines.hungry:
                self.wanted.set()
            if lines.idle and (lines.limit >= FIRST or len(self._lines) > REMEMBERED):
                del self._lines[receiver]

    def _begin(self, due: Due, lines: Lines) -> None:
        lines.calling += 1
        self._calling += 1
        task = asyncio.get_running_loop().create_task(self._one(due, lines))
        self.sending.add(task)
        task.add_done_callback(self.sending.discard)

    async def _one(self, due: Due, lines: Lines) -> None:
        begun, answered = time.monotonic(), False
        try:
            sent = await self._outbox.send(due, self._doors)
            answered = sent.http_status is not None
        except Exception as error:  # it is sent again later
            log.error("a callback to %s could not be sent: %s", due.receiver, first_line(error))
            return
        finally:
            lines.learn(time.monotonic() - begun, answered=answered)
            lines.calling -= 1
            self._calling -= 1
            self._fill()
        self._sent.append(sent)
        if self._recording is None:
            self._recording = asyncio.create_task(self._record())
        await asyncio.shield(self._recording)

    async def _record(self) -> None:
        """Write what came of all calls that have ended; a little later, so that there are several."""
        try:
            while self._sent:
                await asyncio.sleep(GATHER_SECONDS)
                sent, self._sent = self._sent, []
                if await asyncio.to_thread(self._outbox.record, sent):
                    self.wanted.set()  # what waited behind one of them may leave
        except Exception as error:  # they are sent again later
            self._patience.failed("record what came of callbacks", error)
        else:
            self._patience.worked("record what came of callbacks")
        finally:
            self._recording = None
