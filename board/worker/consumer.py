"""The consumer: takes ready work, runs it on a few slots, keeps its leases, and hands everything back when it stops.

The handlers run on an event loop of their own, and so does what asks for work and sends callbacks. APScheduler's
threads keep the clock: polling, heartbeat, upkeep. A handler that blocks the loop with pure computing therefore never
stops the heartbeat, and takes no further work until it is through.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from apscheduler.executors.pool import ThreadPoolExecutor as SchedulerThreads
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import select

from board.db.engine import Database
from board.effects.deliver import Outbox
from board.effects.http import Doors
from board.effects.sender import Sender
from board.patience import Patience
from board.ports import CANCELLED
from board.queue.wanted import Queue
from board.tasks.ledger import Lease, Ledger
from board.tasks.models import tasks
from board.tasks.states import Pool
from board.upkeep import watch
from board.upkeep.keeper import Chore, Keeper
from board.upkeep.watch import Watch
from board.worker.ahead import Ahead
from board.worker.claimer import Claimer
from board.worker.glance import Glance
from board.worker.holding import Holding
from board.worker.holds import Holds
from board.worker.mailbox import Mailbox
from board.worker.preparing import Preparer
from board.worker.presence import BEAT_SECONDS, Presence
from board.worker.run import Runner
from board.worker.slots import Slots

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0  # without any wake-up work still starts within this time
REREAD_SECONDS = 15.0  # pauses, weights and types, which are read as soon as a change of them is seen
FINISH_SECONDS = 1.0  # at a stop, short work may end by itself for so long; the rest is handed back
# Computing on the loop is taken for work; after this time it is taken for an endless loop, and its leases run out.
STUCK_SECONDS = 600.0
# Work on a file that takes no longer is soon done: the next one may wait for its child that long, with its lease held.
SOON_SECONDS = 0.5
STOP_SECONDS = 2.0  # after this the process leaves, whatever a handler does; its leases run out then
WORD_SECONDS = 1.5  # at a stop, the database may take so long for the last word; else it is away


class Consumer:
    """One per worker process."""

    def __init__(
        self,
        db: Database,
        ledger: Ledger,
        queue: Queue,
        preparer: Preparer,
        runner: Runner,
        holds: Holds,
        mailbox: Mailbox,
        outbox: Outbox,
        keeper: Keeper,
        presence: Presence,
        watcher: Watch,
        *,
        name: str,
        concurrency: int,
        file_slots: int,
        reserved_p0: int,
        weights: Sequence[int],
        zone: str,
        lease: float,
        allow_private: Sequence[str],
        only_types: Sequence[str] | None = None,
        only_lanes: Sequence[int] | None = None,
    ) -> None:
        self.name = name
        self.on_lost: Callable[[str], None] = lambda _: None  # told once, when the database is gone for good
        self.looked_at = time.monotonic()  # when work was last asked for, with success
        self._db, self._ledger, self._runner, self._mailbox = db, ledger, runner, mailbox
        self._keeper, self._presence, self._watch = keeper, presence, watcher
        self._concurrency, self._lease = concurrency, lease
        self._work_wanted = asyncio.Event()
        self.holding = Holding(runner, Slots(concurrency, reserved_p0), name, self._work_wanted.set)
        # Work on files has slots of its own, so that neither waits for the other; one of them is kept for P0. While one
        # file is worked on, the next that is soon done is fetched, and the last one kept.
        self.files = Holding(
            runner, Slots(file_slots, 1, spare=1), name, self._work_wanted.set, Ahead(1, SOON_SECONDS, most=1)
        )
        self._pools = {Pool.BOARD: self.holding, Pool.FILES: self.files}
        mailbox.park = self.holding.park
        self._rules_seen: Hashable = None
        self._reread_at = 0.0
        self._doors = Doors(allow_private)
        self._claimer = Claimer(
            db,
            queue,
            preparer,
            holds,
            presence,
            self._pools,
            self._doors,
            name=name,
            lease=lease,
            weights=weights,
            zone=zone,
            only_types=only_types,
            only_lanes=only_lanes,
        )
        self._claimer.wake_in = self._wake_soon
        signs = {chore.what: chore.sign for chore in keeper.chores if chore.sign is not None}
        self._glance = Glance(db, list(self._pools), only_types, only_lanes, signs)
        self._patience = Patience()
        self._sender = Sender(outbox, self._doors, self._patience)
        self._loop = asyncio.new_event_loop()
        self._loop_thread = threading.Thread(target=self._run_loop, name="handlers", daemon=True)
        self._loop_seen = time.monotonic()  # when the loop last had a moment for anything
        self._alarm: asyncio.TimerHandle | None = None
        self._stopping = False
        self._entered = False
        self._scheduler = BackgroundScheduler(
            # A thread for each job: one that hangs, as every one does when the network swallows the database's
            # answers, must not keep the heartbeat waiting once it is back.
            executors={"default": SchedulerThreads(len(keeper.chores) + 3)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone="UTC",
        )

    def enter(self) -> list[str]:
        """Enter the table of workers, once, before the start. Returns and raises what Presence.enter does."""
        self._entered = True
        return self._presence.enter()

    def start(self) -> None:
        """Begin to take work. Returns at once."""
        if not self._entered:
            self.enter()
        self._loop_thread.start()
        every = self._scheduler.add_job
        every(self._heartbeat, "interval", seconds=min(BEAT_SECONDS, self._lease / 4), id="heartbeat")
        every(self._look_at_database, "interval", seconds=watch.LOOK_SECONDS, id="watch")
        begin = datetime.now(UTC)
        every(self._tick, "interval", seconds=POLL_SECONDS, id="poll", next_run_time=begin)
        for chore in self._keeper.chores:  # the first, finding a leader, at once; the leader's own a moment later
            first = {} if chore.alone else {"next_run_time": begin}
            every(self._do, "interval", [chore], seconds=chore.every, id=chore.what, **first)
        self._scheduler.start()

    def wake(self) -> None:
        """Something may be ready: look now instead of at the next poll. Cheap, callable from any thread."""
        if not self._stopping:
            self._loop.call_soon_threadsafe(self._work_wanted.set)

    def _wake_soon(self, seconds: float) -> None:
        self._loop.call_soon_threadsafe(self._wake_in, seconds)

    def _wake_in(self, seconds: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._loop.call_later(seconds, self.wake)

    def wake_outbox(self) -> None:
        """A callback may be due: the same for the outbox."""
        if not self._stopping:
            self._loop.call_soon_threadsafe(self._sender.wanted.set)

    def look_for_cancelled(self) -> None:
        """A running task was asked to stop: tell its handler now instead of at the next poll."""
        self._soon(self._stop_cancelled)

    def look_for_answers(self) -> None:
        """A callback has come: hand it to the attempt that waits for it now instead of at the next poll."""
        self._soon(self._look_for_answers)

    def follow_rules(self) -> None:
        """Pauses or weights were changed: follow now instead of at the next poll."""

        def follow() -> None:
            self._patience.run("read the queue's settings", self._claimer.read_rules)
            self.wake()

        self._soon(follow)

    def _soon(self, work: Callable[[], None]) -> None:
        if not self._stopping:
            self._loop.call_soon_threadsafe(self._loop.run_in_executor, None, work)

    def stop(self) -> None:
        """Take nothing new, let short work end, hand back the rest.

        Returns within STOP_SECONDS and WORD_SECONDS, also when the database does not answer.
        """
        if not self._scheduler.running:
            return  # never started, or stopped already
        self._stopping = self.holding.stopping = self.files.stopping = self._patience.over = True
        logging.getLogger("apscheduler").setLevel(logging.CRITICAL)  # a job that just wanted to begin is no error
        self._scheduler.shutdown(wait=False)
        done = asyncio.run_coroutine_threadsafe(self._wind_down(), self._loop)
        try:
            done.result(timeout=STOP_SECONDS)
        except TimeoutError:
            log.warning("%d task(s) did not stop in time; their leases will run out", len(self._leases()))
        _briefly(self._say_goodbye)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._loop_thread.join(timeout=0.5)
        if not self._loop_thread.is_alive() and not self._leases():
            self._loop.close()

    # -- on the scheduler's threads ---------------------------------------------------------------------------------

    def _tick(self) -> None:
        self._loop.call_soon_threadsafe(self._see_loop)
        for holding in self._pools.values():
            self._loop.call_soon_threadsafe(holding.hand_back_late)
        self._stop_cancelled()
        self._look_for_answers()
        self._patience.run("look whether there is anything to do", self._look_around)
        self.wake_outbox()

    def _look_around(self) -> None:
        """Begin what there is to do: claims, and chores of which a sign is seen."""
        seen = self._glance.look()
        moment = time.monotonic()
        unread = self._claimer.rules is None or seen.holds or seen.rules != self._rules_seen
        if unread or moment >= self._reread_at:
            if self._patience.run("read the queue's settings", self._claimer.read_rules):
                self._rules_seen, self._reread_at = seen.rules, moment + REREAD_SECONDS
        else:
            self._claimer.follow_clock(seen.moment)
        if seen.work:
            self.wake()
        else:
            self.looked_at = moment
        for what in seen.due:
            self._scheduler.modify_job(what, next_run_time=datetime.now(UTC))

    def _look_for_answers(self) -> None:
        self._patience.run("look for callbacks that came in", self._mailbox.look)

    def _do(self, chore: Chore) -> None:
        def work() -> None:
            if self._keeper.do(chore):
                self.wake()  # it has perhaps made something ready

        self._patience.run(chore.what, work)

    def _look_at_database(self) -> None:
        def look() -> None:
            if (reason := self._watch.look()) is not None and not self._stopping:
                self._stopping = self.holding.stopping = self.files.stopping = self._patience.over = True
                self.on_lost(reason)

        self._patience.run("look whether the database is still the same", look)

    def _see_loop(self) -> None:
        self._loop_seen = time.monotonic()

    def _heartbeat(self) -> None:
        if time.monotonic() - self._loop_seen < STUCK_SECONDS:
            self._renew(self._lease)
        else:
            log.error("a handler blocks this worker for more than %g s; its tasks are left to others", STUCK_SECONDS)

    def _renew(self, seconds: float) -> None:
        """A sign of life of the worker and of every lease it holds, in one transaction."""
        held = self._leases()

        def renew() -> None:
            with self._db.write() as tx:
                self._presence.beat(tx, len(held))
                alive = self._ledger.renew(tx, self.name, held, seconds) if held else {}
            for lease in held:
                if lease.task not in alive:  # just settled, or lost: then nothing of this attempt counts any more
                    self._cancel(lease)

        self._patience.run("renew leases", renew)

    def _say_goodbye(self) -> None:
        def leave() -> None:
            with self._db.write() as tx:
                self._presence.leave(tx)
                self._keeper.leave(tx)

        self._patience.run("say goodbye", leave)

    def _stop_cancelled(self) -> None:
        held = {lease.task: lease for lease in self._leases()}
        if not held:
            return

        def look() -> None:
            query = select(tasks.c.id).where(tasks.c.id.in_(held), tasks.c.cancel_requested)
            with self._db.read() as connection:
                asked = list(connection.execute(query).scalars())
            for task in asked:
                self._cancel(held[task], CANCELLED)

        self._patience.run("look for cancelled tasks", look)

    def _leases(self) -> list[Lease]:
        return [lease for holding in self._pools.values() for lease in holding.leases()]

    def _cancel(self, lease: Lease, why: str | None = None) -> None:
        for holding in self._pools.values():
            holding.cancel(lease, self._loop, why)

    # -- claiming: the statements in a thread, the beginning on the loop -------------------------------------------

    async def _keep_claiming(self) -> None:
        while not self._stopping:
            await self._work_wanted.wait()
            self._work_wanted.clear()
            try:
                while taken := await asyncio.to_thread(self._claimer.take_all):
                    for holding, claimed in taken:
                        await holding.begin(claimed)
                self.looked_at = time.monotonic()
                self._patience.worked("claim work")
            except Exception as error:
                self._patience.failed("claim work", error)

    # -- on the handlers' loop ----------------------------------------------------------------------------------------

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        # Settling and preparing block on the database; as many threads as slots, so that none waits for another.
        self._loop.set_default_executor(ThreadPoolExecutor(max_workers=self._concurrency + self.files.size + 8))
        self._claiming = self._loop.create_task(self._keep_claiming())
        self._mailer = self._loop.create_task(self._sender.keep_sending())
        self._loop.run_forever()

    async def _wind_down(self) -> None:
        # The last heartbeat, which must last until all is handed back.
        self._loop.run_in_executor(None, self._renew, max(self._lease, 2 * STOP_SECONDS))
        self._work_wanted.set()
        await self._claiming  # what it has just claimed is begun, and handed back with the rest
        for holding in self._pools.values():
            holding.hand_back_all()
        self._mailer.cancel()
        self._sender.stop()
        # Who only waits for a callback does so elsewhere: nobody waits for that here.
        working = [*(it for holding in self._pools.values() for it in holding.at_work()), *self._sender.sending]
        if working:
            await asyncio.wait(working, timeout=FINISH_SECONDS)
        working = [*(it for holding in self._pools.values() for it in holding.begun()), *self._sender.sending]
        for task in working:
            task.cancel()
        await asyncio.gather(self._mailer, *working, return_exceptions=True)
        await self._runner.all_settled()
        await self._sender.recorded()
        await self._doors.close()


def _briefly(word: Callable[[], None]) -> None:
    """Say a word to the database, and go on without an answer when it takes its time."""
    saying = threading.Thread(target=word, daemon=True)
    saying.start()
    saying.join(WORD_SECONDS)
