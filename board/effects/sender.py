"""Sends what the outbox holds. Each receiver has a few lines of its own, so one that hangs never delays another."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from sqlalchemy import RowMapping

from board.effects.callbacks import receiver
from board.effects.deliver import Outbox
from board.effects.http import Doors
from board.logs import first_line
from board.patience import Patience

log = logging.getLogger(__name__)


class Sender:
    """One per worker process; everything runs on the event loop. `wanted`: set it when a callback may be due."""

    def __init__(self, outbox: Outbox, doors: Doors, patience: Patience) -> None:
        self.wanted = asyncio.Event()
        self.sending: set[asyncio.Task[None]] = set()
        self._outbox, self._doors, self._patience = outbox, doors, patience
        self._busy: Counter[str] = Counter()  # calls under way, by receiver

    async def keep_sending(self) -> None:
        """Send whatever is due, whenever that is asked for, until cancelled."""
        while True:
            await self.wanted.wait()
            self.wanted.clear()
            try:
                while rows := await asyncio.to_thread(self._outbox.take, self._busy.copy()):
                    for row in rows:
                        self._begin(row)
            except Exception as error:
                self._patience.failed("look for callbacks", error)
            else:
                self._patience.worked("look for callbacks")

    def _begin(self, row: RowMapping) -> None:
        where = receiver(row["target"])
        self._busy[where] += 1
        task = asyncio.get_running_loop().create_task(self._outbox.send(row, self._doors))
        self.sending.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self.sending.discard(task)
            self._busy[where] -= 1
            if not self._busy[where]:
                del self._busy[where]
            if not task.cancelled() and (error := task.exception()) is not None:
                log.error(
                    "a callback to %s could not be recorded: %s", where, first_line(error)
                )  # it is sent again later
            self.wanted.set()  # its line is free

        task.add_done_callback(ended)
