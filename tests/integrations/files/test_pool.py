"""Child processes: one file may cost one child, never the worker; and no child outlives its parent."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from board.ports import StorageError
from integrations.files import child
from integrations.files.bad_file import BadFile
from integrations.files.pool import Pool, Turn
from tests.integrations.files import harm

SOON = 30.0


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.close()


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def told_pid(path: Path) -> int:
    """Of the child, once it has written it there."""
    end = time.monotonic() + SOON
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < end, "the child never began"
        time.sleep(0.01)
    return int(path.read_text())


def until_gone(pid: int) -> None:
    end = time.monotonic() + SOON
    while not gone(pid):
        assert time.monotonic() < end, "the child lives on"
        time.sleep(0.01)


async def test_a_child_is_used_again(pool: Pool) -> None:
    assert await pool.run(Turn(1), SOON, os.getpid) == await pool.run(Turn(1), SOON, os.getpid) != os.getpid()


async def test_as_many_at_once_as_there_are_slots(pool: Pool, tmp_path: Path) -> None:
    """Two that wait for each other both end; a third would never come in beside them."""
    pids = await asyncio.gather(
        *(pool.run(Turn(2, number == 0), SOON, harm.meet, str(tmp_path), 2, number) for number in range(2))
    )
    assert len(set(pids)) == 2


@pytest.mark.parametrize(
    ("what", "given", "word"),
    [
        (harm.hang, (), "longer than"),
        (harm.eat_memory, (child.MEMORY,), "memory"),
        (harm.die, (signal.SIGKILL,), "broke off"),
        (harm.die, (signal.SIGSEGV,), "broke off"),
        (os._exit, (3,), "broke off"),
        (harm.refuse, ("it is bad",), "it is bad"),
    ],
)
async def test_what_a_file_does_costs_one_child(pool: Pool, what: object, given: tuple[object, ...], word: str) -> None:
    with pytest.raises(BadFile, match=word):
        await pool.run(Turn(1), 2.0 if what is harm.hang else SOON, what, *given)  # type: ignore[arg-type]
    assert await pool.run(Turn(1), SOON, os.getpid) != os.getpid()


async def test_a_full_disk_is_no_fault_of_the_file(pool: Pool) -> None:
    with pytest.raises(StorageError, match="full") as raised:
        await pool.run(Turn(1), SOON, harm.fill_the_disk, errno.ENOSPC)
    assert raised.value.transient
    with pytest.raises(PermissionError):
        await pool.run(Turn(1), SOON, harm.fill_the_disk, errno.EACCES)


async def test_a_mistake_of_ours_is_an_error_and_no_bad_file(pool: Pool) -> None:
    with pytest.raises(ZeroDivisionError):
        await pool.run(Turn(1), SOON, divmod, 1, 0)


async def test_an_attempt_that_is_cancelled_ends_its_child(pool: Pool, tmp_path: Path) -> None:
    told = tmp_path / "pid"
    running = asyncio.create_task(pool.run(Turn(1), SOON, harm.tell_and_hang, str(told)))
    pid = await asyncio.to_thread(told_pid, told)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.to_thread(until_gone, pid)


def test_closing_ends_the_children_whatever_they_do(tmp_path: Path) -> None:
    async def begin() -> None:
        pool = Pool()
        running = asyncio.create_task(pool.run(Turn(1), SOON, harm.tell_and_hang, str(tmp_path / "pid")))
        await asyncio.to_thread(told_pid, tmp_path / "pid")
        await asyncio.to_thread(pool.close)
        with pytest.raises((BadFile, asyncio.CancelledError, BrokenProcessPool)):
            await running

    asyncio.run(begin())
    until_gone(int((tmp_path / "pid").read_text()))


async def test_closing_leaves_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the pool has lost sight of the child that was worked in."""
    pool = Pool()
    running = asyncio.create_task(pool.run(Turn(1), SOON, harm.tell_and_hang, str(tmp_path / "pid")))
    await asyncio.to_thread(told_pid, tmp_path / "pid")
    lost = pool._pool
    assert lost is not None
    with monkeypatch.context() as patched:
        patched.setattr(lost, "stop", lambda: None)
        patched.setattr(lost, "join", lambda _: None)
        await asyncio.to_thread(pool.close)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, SOON / 2)
    lost.stop()  # type: ignore[no-untyped-call]
    await asyncio.to_thread(lost.join, SOON)
    await asyncio.to_thread(until_gone, int((tmp_path / "pid").read_text()))


async def test_a_child_is_nicer_than_its_parent(pool: Pool) -> None:
    assert await pool.run(Turn(1), SOON, os.nice, 0) >= os.nice(0) + child.NICENESS


@pytest.mark.skipif(sys.platform != "linux", reason="the system tells children of their parent's death on Linux only")
def test_a_child_dies_with_its_parent_even_by_sigkill(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-m", "tests.integrations.files.harm", str(told)])
    try:
        pid = told_pid(told)
    finally:
        parent.kill()
        parent.wait()
    until_gone(pid)


def test_a_parent_that_closes_its_pool_leaves_nothing_behind() -> None:
    """Else Python warns of semaphores that leaked, at the stop of each worker that did work on files."""
    done = subprocess.run([sys.executable, "-m", "tests.integrations.files.harm"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


async def test_one_child_is_left_for_what_is_urgent(pool: Pool, tmp_path: Path) -> None:
    told = tmp_path / "pid"
    hanging = asyncio.create_task(pool.run(Turn(2), SOON, harm.tell_and_hang, str(told)))
    pid = await asyncio.to_thread(told_pid, told)
    waiting = asyncio.create_task(pool.run(Turn(2), SOON, os.getpid))
    assert await pool.run(Turn(2, urgent=True), SOON, os.getpid) != pid
    assert not waiting.done(), "the others have one child, and it is busy"
    hanging.cancel()
    assert isinstance(await waiting, int)
