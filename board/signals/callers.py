"""Callers who follow a task: woken by what is heard, and by a look at the database for what was not.

One look serves all who wait in this process, however many they are: a single statement over the tasks they follow.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from board.db.engine import Database
from board.patience import Patience
from board.signals.signal import Said
from board.signals.tail import Tail
from board.tasks.history import event_seqs

# A message that was lost delays its caller by this long at most, seconds. On SQLite with processes apart, where there
# is nothing but looking, it is what an answer takes longer than the work.
LOOK_SECONDS = 0.5
# Characters that wait for a caller who reads slowly; then text is left out. A page of a model's text has about 3,000.
WAITING_TEXT = 64_000
# What late callers still get to see: of so many tasks the last so many characters. At most some 25 MB, mostly far less.
KEPT_TASKS, KEPT_TEXT = 200, 32_000


class Caller:
    """One caller; `with callers.open() as caller`. Belongs to the event loop in which it was made; is told from any
    thread."""

    def __init__(self, callers: Callers) -> None:
        self.task = 0
        self.seen: int | None = None  # the number of the last event he knows of; he sets it whenever he has looked
        self._callers = callers
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._tail = Tail(WAITING_TEXT)
        self._moved = False
        self._lock = threading.Lock()

    def follow(self, task: int) -> None:
        """Listen from now on, and get what was said before; task: its internal id. Then look, not the other way round:
        what happens after the look is heard. Callable from any thread."""
        self._callers.follow(self, task)

    def close(self) -> None:
        self._callers.forget(self)

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def wait(self, seconds: float) -> bool:
        """Until something is heard, at most so many seconds; whether something was."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)
        heard = self._event.is_set()
        self._event.clear()
        return heard

    def take(self) -> tuple[bool, list[Said]]:
        """Since the last time: whether the task may have moved, and what was said until then."""
        with self._lock:
            moved, said = self._moved, self._tail.said()
            self._moved = False
            self._tail.clear()
        return moved, said

    def take_said(self) -> list[Said]:
        """What was said since the last time."""
        with self._lock:
            said = self._tail.said()
            self._tail.clear()
        return said

    def hear_move(self) -> None:
        """The task may have moved."""
        with self._lock:
            self._moved = True
        self._wake()

    def hear_said(self, said: Iterable[Said]) -> None:
        with self._lock:
            for it in said:
                self._tail.add(it)
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # its loop has just been closed: nobody waits there any more
            self._loop.call_soon_threadsafe(self._event.set)


class Callers:
    """All callers of this process."""

    def __init__(self, db: Database) -> None:
        self.wanted = True  # nobody ever waits in a process that only works: then nothing is kept
        self._db = db
        self._lock = threading.Lock()
        self._callers: dict[int, set[Caller]] = {}
        self._kept: OrderedDict[int, Tail] = OrderedDict()
        self._looker: threading.Thread | None = None
        self._idle = threading.Event()  # set when the last caller has left
        self._patience = Patience()

    def open(self) -> Caller:
        """A new caller, to be closed when he leaves; within a running event loop."""
        return Caller(self)

    def follow(self, caller: Caller, task: int) -> None:
        with self._lock:
            caller.task = task
            self._callers.setdefault(task, set()).add(caller)
            kept = self._kept.get(task)
            said = kept.said() if kept else []
            self._idle.clear()
            if self._looker is None:
                self._looker = threading.Thread(target=self._keep_looking, name="callers", daemon=True)
                self._looker.start()
        if said:
            caller.hear_said(said)

    def changed(self, tasks: Iterable[int]) -> None:
        """Tasks have moved."""
        with self._lock:
            callers = [caller for task in tasks for caller in self._callers.get(task, ())] if self._callers else ()
        for caller in callers:
            caller.hear_move()

    def said(self, said: Said) -> None:
        """An attempt has told something."""
        if not self.wanted:
            return
        with self._lock:
            if said.task not in self._kept:
                self._kept[said.task] = Tail(KEPT_TEXT)
                if len(self._kept) > KEPT_TASKS:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(said.task)
            self._kept[said.task].add(said)
            callers = list(self._callers.get(said.task, ()))
        for caller in callers:
            caller.hear_said([said])

    def ring(self) -> None:
        """Everybody looks: messages may have been lost, or the process goes down."""
        with self._lock:
            callers = [caller for some in self._callers.values() for caller in some]
        for caller in callers:
            caller.hear_move()

    def __len__(self) -> int:
        with self._lock:
            return sum(len(callers) for callers in self._callers.values())

    def forget(self, caller: Caller) -> None:
        with self._lock:
            if (callers := self._callers.get(caller.task)) is not None:
                callers.discard(caller)
                if not callers:
                    del self._callers[caller.task]
            if not self._callers:
                self._idle.set()

    def _keep_looking(self) -> None:
        """The look for lost messages, while anybody is there."""
        while True:
            self._idle.wait(LOOK_SECONDS)
            with self._lock:
                if not self._callers:
                    self._looker = None
                    return
                followed = list(self._callers)
            self._patience.run("look for tasks that callers wait for", partial(self._look, followed))

    def _look(self, followed: list[int]) -> None:
        with self._db.read() as connection:
            seqs = event_seqs(connection, followed)
        for task in followed:
            with self._lock:
                callers = list(self._callers.get(task, ()))
            for caller in callers:
                if caller.seen not in (None, seqs.get(task)):  # also where the task is gone
                    caller.hear_move()
