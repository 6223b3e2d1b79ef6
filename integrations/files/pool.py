"""The child processes of a worker: as many as file slots, made when first needed, used again, replaced when lost."""

from __future__ import annotations

import asyncio
import atexit
import errno
import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TookTooLong
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from board.ports import Job, StorageError
from integrations.files import child
from integrations.files.bad_file import BadFile

if TYPE_CHECKING:
    from pebble import ProcessPool

# After so many files a child is replaced: what libraries leak stays small, and a start costs half a second.
FILES_PER_CHILD = 500
_FULL = (errno.ENOSPC, errno.EDQUOT)
Given = ParamSpec("Given")
Result = TypeVar("Result")


class Turn(NamedTuple):
    """children: how many there may be; the first call decides. urgent: somebody waits for it, so it may
    use the last child, which is kept free of all else."""

    children: int
    urgent: bool = False

    @staticmethod
    def of(job: Job) -> Turn:
        return Turn(job.files.slots, job.priority == "P0")


class Pool:
    """One per worker process."""

    def __init__(self) -> None:
        self._pool: ProcessPool | None = None
        self._lock = threading.Lock()
        self._running: set[Future[Any]] = set()
        self._gate: asyncio.Semaphore | None = None  # of what is not urgent: one child is left for what is

    async def run(
        self, turn: Turn, seconds: float, work: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
    ) -> Result:
        """Run a function of a module in a child, as soon as it is its turn.

        seconds: for the work itself. Raises BadFile: what the function says, or that it took more time or memory than a
        file may. When this is cancelled, the child is killed. Raises StorageError where the disk is full.
        """
        if turn.urgent:
            return await self._run(turn.children, seconds, work, *args, **kwargs)
        if self._gate is None:
            self._gate = asyncio.Semaphore(max(1, turn.children - 1))
        async with self._gate:
            return await self._run(turn.children, seconds, work, *args, **kwargs)

    async def _run(
        self, most: int, seconds: float, work: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
    ) -> Result:
        from pebble import ProcessExpired  # here: most workers never touch a file

        future = self._opened(most).schedule(work, args=args, kwargs=kwargs, timeout=seconds)
        self._running.add(future)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.cancel()  # type: ignore[no-untyped-call]
            raise
        except TookTooLong as error:
            raise BadFile(f"It takes longer than {seconds:.0f} s to work on; it was stopped.") from error
        except MemoryError as error:
            raise BadFile("It needs more memory than a file may have to be worked on.") from error
        except ProcessExpired as error:
            raise BadFile("The program that works on it broke off; the file is damaged, or made to do harm.") from error
        except OSError as error:  # after ProcessExpired, which is one too
            if error.errno not in _FULL:
                raise
            raise StorageError("The disk for temporary files is full. Free some space.", transient=True) from error
        finally:
            self._running.discard(future)

    def _opened(self, most: int) -> ProcessPool:
        with self._lock:
            from pebble import ProcessPool

            if self._pool is None or not self._pool.active:
                # Spawned, not forked: this process has threads, and locks of theirs would stay locked in a fork.
                self._pool = ProcessPool(
                    max_workers=most,
                    max_tasks=FILES_PER_CHILD,
                    initializer=child.begin,
                    initargs=(os.getpid(),),
                    context=multiprocessing.get_context("spawn"),
                )
                atexit.register(self.close)
            return self._pool

    def close(self) -> None:
        """End the children, whatever they do. Whoever waits for one is cancelled."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            pool.stop()  # type: ignore[no-untyped-call]
            pool.join(5)
        finally:
            # A child that ends in the same moment may leave its future open, and a worker would wait for it for ever.
            for future in list(self._running):
                future.cancel()
