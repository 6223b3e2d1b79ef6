"""The consumer: takes ready work, runs it on a few slots, keeps its leases, and hands everything back when it stops.

APScheduler's threads drive it (claiming, heartbeat, sweep, outbox); the handlers run on an event loop of their own.
A handler that blocks that loop with pure computing therefore never stops the heartbeat.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor as SchedulerThreads
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import RowMapping, select

from board.catalogue.store import Catalogue
from board.db.engine import Database
from board.effects.deliver import Outbox
from board.effects.http import Doors
from board.queue import ledger_queue
from board.tasks.ledger import Lease, Ledger
from board.tasks.models import tasks
from board.upkeep import sweep
from board.worker.run import Runner

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0  # without any wake-up work still starts within this time
FINISH_SECONDS = 1.0  # at a stop, short work may end by itself for so long; the rest is handed back
STOP_SECONDS = 4.0  # after this the process leaves, whatever a handler does; its leases run out then


class Consumer:
    """One per worker process."""

    def __init__(
        self,
        db: Database,
        ledger: Ledger,
        catalogue: Catalogue,
        runner: Runner,
        outbox: Outbox,
        *,
        concurrency: int,
        lease: float,
        allow_private: Sequence[str],
        only_types: Sequence[str] | None = None,
        only_lanes: Sequence[int] | None = None,
    ) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        self._db, self._ledger, self._catalogue = db, ledger, catalogue
        self._runner, self._outbox = runner, outbox
        self._concurrency, self._lease = concurrency, lease
        self._only_types, self._only_lanes = only_types, only_lanes
        self._doors = Doors(allow_private)
        self._loop = asyncio.new_event_loop()
        self._loop_thread = threading.Thread(target=self._run_loop, name="handlers", daemon=True)
        self._running: dict[Lease, asyncio.Task[None]] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._alone = False  # a suspect runs: nothing beside it
        self._stopping = False
        self._claiming = _OneAtATime(self._claim)
        self._delivering = _OneAtATime(self._deliver)
        self._scheduler = BackgroundScheduler(
            executors={"default": SchedulerThreads(6)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone="UTC",
        )

    def start(self) -> None:
        """Begin to take work. Returns at once."""
        self._loop_thread.start()
        every = self._scheduler.add_job
        every(self._tick, "interval", seconds=POLL_SECONDS, id="claim")
        every(self._deliver_tick, "interval", seconds=POLL_SECONDS, id="deliver")
        every(self._heartbeat, "interval", seconds=self._lease / 4, id="heartbeat")
        every(self._sweep, "interval", seconds=min(10.0, self._lease), id="sweep")
        self._scheduler.start()
        self.wake()

    def wake(self) -> None:
        """Something may be ready: look now instead of at the next poll. Cheap, callable from any thread."""
        if not self._stopping:
            self._loop.call_soon_threadsafe(self._loop.run_in_executor, None, self._claiming.ask)

    def wake_outbox(self) -> None:
        if not self._stopping:
            self._loop.call_soon_threadsafe(self._loop.run_in_executor, None, self._delivering.ask)

    def look_for_cancelled(self) -> None:
        """A running task was cancelled here: tell its handler now instead of at the next poll."""
        if not self._stopping:
            self._loop.call_soon_threadsafe(self._loop.run_in_executor, None, self._stop_cancelled)

    def stop(self) -> None:
        """Take nothing new, let short work end, hand back the rest. Returns within about STOP_SECONDS."""
        self._stopping = True
        self._scheduler.shutdown(wait=False)
        done = asyncio.run_coroutine_threadsafe(self._wind_down(), self._loop)
        try:
            done.result(timeout=STOP_SECONDS)
        except TimeoutError:
            log.warning("%d task(s) did not stop in time; their leases will run out", len(self._running))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._loop_thread.join(timeout=1.0)

    # -- on the scheduler's threads ---------------------------------------------------------------------------------

    def _tick(self) -> None:
        self._guarded("look for cancelled tasks", self._stop_cancelled)
        self._guarded("finish grace times", lambda: sweep.finish_grace(self._db, self._ledger))
        self._claiming.ask()

    def _deliver_tick(self) -> None:
        self._delivering.ask()

    def _heartbeat(self) -> None:
        held = list(self._running)
        if not held:
            return

        def renew() -> None:
            with self._db.write() as tx:
                alive = self._ledger.renew(tx, self.name, held, self._lease)
            for lease in held:
                if lease.task not in alive:
                    log.warning("the lease of task row %d was lost; its attempt is stopped", lease.task)
                    self._cancel(lease)

        self._guarded("renew leases", renew)

    def _sweep(self) -> None:
        def rescue() -> None:
            if sweep.rescue_leases(self._db, self._ledger, self._catalogue):
                self._claiming.ask()

        self._guarded("rescue lost leases", rescue)

    def _stop_cancelled(self) -> None:
        held = {lease.task: lease for lease in list(self._running)}
        if not held:
            return
        query = select(tasks.c.id).where(tasks.c.id.in_(held), tasks.c.cancel_requested)
        with self._db.read() as connection:
            asked = list(connection.execute(query).scalars())
        for task in asked:
            self._cancel(held[task])

    def _claim(self) -> None:
        self._guarded("claim work", self._claim_now)

    def _claim_now(self) -> None:
        while not self._stopping and not self._alone:
            free = self._concurrency - len(self._running)
            if free <= 0:
                return
            with self._db.read() as connection:
                suspects = ledger_queue.waiting(connection, suspects=True)
                if suspects and self._running:
                    return  # take nothing until this worker is empty: the suspect runs alone
                if not suspects and not ledger_queue.waiting(connection, suspects=False):
                    return
            with self._db.write() as tx:
                taken = ledger_queue.take(
                    tx,
                    self._ledger,
                    slots=1 if suspects else free,
                    worker=self.name,
                    lease=self._lease,
                    suspects=suspects,
                    only_types=self._only_types,
                    only_lanes=self._only_lanes,
                )
            if not taken:
                return
            self._alone = suspects
            asyncio.run_coroutine_threadsafe(self._begin(taken), self._loop).result()

    def _deliver(self) -> None:
        def send_due() -> None:
            while not self._stopping and (rows := self._outbox.take()):
                asyncio.run_coroutine_threadsafe(self._send(rows), self._loop).result()

        self._guarded("send callbacks", send_due)

    def _guarded(self, what: str, work: Callable[[], Any]) -> None:
        """A database that is away for a moment must not end the consumer: it says so and tries again next time."""
        try:
            work()
        except Exception as error:
            if not self._stopping:
                log.error("could not %s: %s", what, str(error).splitlines()[0] if str(error) else type(error).__name__)

    # -- on the handlers' loop ----------------------------------------------------------------------------------------

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        # Settling and preparing block on the database; as many threads as slots, so that none waits for another.
        self._loop.set_default_executor(ThreadPoolExecutor(max_workers=self._concurrency + 8))
        self._loop.run_forever()

    async def _begin(self, rows: Sequence[RowMapping]) -> None:
        for row in rows:
            lease = Lease(row["id"], row["lease_token"])
            task = self._loop.create_task(self._runner.run(row, self.name, self._doors))
            self._running[lease] = task
            task.add_done_callback(partial(self._ended, lease))

    def _ended(self, lease: Lease, task: asyncio.Task[None]) -> None:
        self._running.pop(lease, None)
        if not self._running:
            self._alone = False
        if not task.cancelled() and (error := task.exception()) is not None and not self._stopping:
            # Most likely the database was away when the result was to be written; the sweep brings the task back.
            log.error("an attempt could not be settled: %s", str(error).splitlines()[0] if str(error) else error)
        self.wake()
        self.wake_outbox()

    async def _send(self, rows: Sequence[RowMapping]) -> None:
        await asyncio.gather(*(self._outbox.send(row, self._doors) for row in rows), return_exceptions=True)

    def _cancel(self, lease: Lease) -> None:
        def cancel() -> None:
            if (task := self._running.get(lease)) is not None:
                task.cancel()

        self._loop.call_soon_threadsafe(cancel)

    async def _wind_down(self) -> None:
        if self._running:
            await asyncio.wait(list(self._running.values()), timeout=FINISH_SECONDS)
        for task in list(self._running.values()):
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        await self._doors.close()


class _OneAtATime:
    """Runs `work` when asked; asked while it runs, it runs once more afterwards. No request is ever lost."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._asked = False

    def ask(self) -> None:
        self._asked = True
        while self._asked and self._lock.acquire(blocking=False):
            try:
                while self._asked:
                    self._asked = False
                    self._work()
            finally:
                self._lock.release()
