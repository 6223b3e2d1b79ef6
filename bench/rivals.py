"""Two queues of others, each with one worker process of its own: pgqueuer and Procrastinate, as their manuals say."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.rig.reaper import Reaper

AT_ONCE = 100  # jobs taken in one batch or worked on at the same time, as the board's worker is told in the drain


@dataclass(frozen=True, slots=True)
class Rival:
    """install, fill: run on its database. left: a query that tells whether work is left; span: one that gives the
    seconds from the first start to the last end. part: of the tasks that the others get, so a slow one ends too."""

    name: str
    install: Callable[[str], Coroutine[Any, Any, None]]
    fill: Callable[[str, int], Coroutine[Any, Any, None]]
    work: Callable[[str], Coroutine[Any, Any, None]]
    left: str
    span: str
    part: float = 1.0


async def _nothing(job: object = None, text: str = "") -> None:
    """The work: pgqueuer gives it a job, Procrastinate a text."""


# -- pgqueuer: jobs are deleted when they are done, and a log is kept ------------------------------------------------


async def _pgqueuer_install(url: str) -> None:
    import asyncpg
    from pgqueuer import AsyncpgDriver, Queries

    connection = await asyncpg.connect(url)
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


async def _pgqueuer_fill(url: str, count: int) -> None:
    import asyncpg
    from pgqueuer import AsyncpgDriver, Queries

    connection = await asyncpg.connect(url)
    await Queries(AsyncpgDriver(connection)).enqueue(["nothing"] * count, [b"x" * 200] * count, [0] * count)
    await connection.close()


async def _pgqueuer_work(url: str) -> None:
    import asyncpg
    from pgqueuer import PgQueuer

    connection = await asyncpg.connect(url)
    worker = PgQueuer.from_asyncpg_connection(connection)
    worker.entrypoint("nothing")(_nothing)
    print("ready", flush=True)
    await worker.run(batch_size=AT_ONCE)


# -- Procrastinate: jobs are kept, each with its events ----------------------------------------------------------------


def _procrastinate(url: str) -> Any:
    import procrastinate

    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))
    app.task(name="nothing")(_nothing)
    return app


async def _procrastinate_install(url: str) -> None:
    async with _procrastinate(url).open_async() as app:
        await app.schema_manager.apply_schema_async()


async def _procrastinate_fill(url: str, count: int) -> None:
    async with _procrastinate(url).open_async() as app:
        await app.configure_task("nothing").batch_defer_async(*({"text": "x" * 200} for _ in range(count)))


async def _procrastinate_work(url: str) -> None:
    async with _procrastinate(url).open_async() as app:
        print("ready", flush=True)
        await app.run_worker_async(concurrency=AT_ONCE)


RIVALS = {
    "pgqueuer": Rival(
        "pgqueuer",
        _pgqueuer_install,
        _pgqueuer_fill,
        _pgqueuer_work,
        "SELECT EXISTS (SELECT 1 FROM pgqueuer)",
        "SELECT extract(epoch FROM max(created) FILTER (WHERE status = 'successful')"
        " - min(created) FILTER (WHERE status = 'picked')) FROM pgqueuer_log",
    ),
    "procrastinate": Rival(
        "procrastinate",
        _procrastinate_install,
        _procrastinate_fill,
        _procrastinate_work,
        "SELECT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))",
        "SELECT extract(epoch FROM max(at) FILTER (WHERE type = 'succeeded')"
        " - min(at) FILTER (WHERE type = 'started')) FROM procrastinate_events",
        part=0.1,  # it takes its jobs one by one
    ),
}


def installed(name: str) -> bool:
    """Whether it is here: the extra `bench` brings it."""
    return importlib.util.find_spec(name) is not None


class RivalWorker:
    """One worker process, up as soon as this is made."""

    def __init__(self, name: str, url: str, guard: Reaper) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.rivals", name, url],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        self.pid, self._guard = self._process.pid, guard
        guard.guard(self.pid)
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            self.stop()
            raise RuntimeError(f"the worker of {name} did not start")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._guard.release(self.pid)
        if self._process.stdout:
            self._process.stdout.close()


def one(url: str, query: str) -> Any:
    """The one value that a query gives."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


if __name__ == "__main__":
    asyncio.run(RIVALS[sys.argv[1]].work(sys.argv[2]))
