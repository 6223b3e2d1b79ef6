"""A process's line to the others: a thread that listens and sends, and begins again whenever the carrier fails."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection
from contextlib import suppress

from board.logs import first_line
from board.signals.carrier import Carrier
from board.signals.signal import Channel, Signal
from board.signals.wire import Batch, decode

log = logging.getLogger(__name__)

# Between two sendings, seconds: the first signal goes out at once, what follows within this time goes together. So a
# process sends at most 50 times a second, and nobody notices.
GATHER_SECONDS = 0.02
SEND_SECONDS = 3.0  # a sending that takes longer has failed
# After a failure, seconds: at first at once, for a connection that was cut, then ever more rarely.
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
LAST_WORD_SECONDS = 0.5  # at the end, what waits may take so long to go out


class Line:
    """me: this process, whose own messages it does not hear. channels: none where it only tells. caught_up: called
    when listening has begun (again), after messages may have been lost."""

    def __init__(
        self,
        carrier: Carrier,
        me: str,
        channels: Collection[Channel],
        hear: Callable[[Signal], None],
        caught_up: Callable[[], None],
    ) -> None:
        self._carrier, self._me, self._channels = carrier, me, channels
        self._heard, self._caught_up = hear, caught_up
        self._batch = Batch()
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._wanted = asyncio.Event()
        self._stopping = asyncio.Event()
        self._sending = asyncio.Lock()  # one message after the other, to its end
        self._thread = threading.Thread(target=self._run, name="signals", daemon=True)
        self.listening = threading.Event()  # set while others are heard
        self._interrupted = False
        self._pause = FIRST_PAUSE

    def start(self) -> None:
        self._thread.start()

    def post(self, signal: Signal) -> None:
        """Send it soon. Never waits; callable from any thread."""
        self._post(lambda batch: batch.add(signal))

    def post_changed(self, tasks: Collection[int]) -> None:
        """The same for `Changed` of many tasks."""
        self._post(lambda batch: batch.add_changed(tasks))

    def _post(self, add: Callable[[Batch], None]) -> None:
        with self._lock:
            first = not self._batch
            add(self._batch)
        if first:
            self._tell(self._wanted)

    def stop(self) -> None:
        """Send what waits, and end, within about a second whatever the carrier does."""
        self._tell(self._stopping)
        self._thread.join(2 * LAST_WORD_SECONDS)

    def _tell(self, event: asyncio.Event) -> None:
        with suppress(RuntimeError):  # the loop is closed: the line has ended
            self._loop.call_soon_threadsafe(event.set)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._until_stopped())
        self._loop.close()

    async def _until_stopped(self) -> None:
        works = [self._keep_listening(), self._keep_sending()] if self._channels else [self._keep_sending()]
        working = [self._loop.create_task(work) for work in works]
        await self._stopping.wait()
        with suppress(Exception):
            async with asyncio.timeout(LAST_WORD_SECONDS):
                await self._send()
        for task in working:
            task.cancel()
        await asyncio.wait(working, timeout=LAST_WORD_SECONDS / 2)
        await self._carrier.close()
        await asyncio.wait(working)  # a driver may take its time to give up on a network that is silent

    async def _keep_listening(self) -> None:
        while True:
            try:
                await self._carrier.listen(self._channels, self._hear, self._ready)
            except Exception as error:
                self.listening.clear()
                if not self._interrupted:
                    self._interrupted = True
                    log.warning(
                        "signals over %s are interrupted (%s); work goes on, heard a little later",
                        self._carrier.name,
                        first_line(error),
                    )
            await asyncio.sleep(self._pause)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _ready(self) -> None:
        if self._interrupted:
            log.info("signals over %s are heard again", self._carrier.name)
        self._interrupted = False
        self._pause = FIRST_PAUSE
        self.listening.set()
        self._caught_up()

    def _hear(self, message: str) -> None:
        try:
            sender, signals = decode(message)
        except ValueError:
            log.debug("a message that is none of ours was ignored")
            return
        if sender != self._me:
            for signal in signals:
                self._heard(signal)

    async def _keep_sending(self) -> None:
        pause = FIRST_PAUSE
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._send()
                pause = FIRST_PAUSE
                await asyncio.sleep(GATHER_SECONDS)
            except Exception as error:  # that it is interrupted is said where it is listened
                log.debug("signals could not be sent: %s", first_line(error))
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    async def _send(self) -> None:
        """What waits, once more if the connection was cut; after that it is lost, and others find out by looking."""
        async with self._sending:
            with self._lock:
                batch, self._batch = self._batch, Batch()
            if not (messages := batch.messages(self._me)):
                return
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    await self._carrier.send(messages)
            except TimeoutError:
                await self._carrier.close()
                raise
            except Exception:
                await self._carrier.close()
                async with asyncio.timeout(SEND_SECONDS):
                    await self._carrier.send(messages)
