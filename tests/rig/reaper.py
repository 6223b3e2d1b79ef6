"""Nothing outlives the test run, however it ends.

A small process of its own waits on a pipe from pytest. When the pipe closes (pytest ended, was terminated or
killed), it ends the processes and removes the folders that it was told about. Signal handlers and atexit cannot do
that: they do not run on SIGKILL.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

GRACE = 10.0  # seconds a process gets to end by its own signal before SIGKILL


class Reaper:
    """Guards processes and folders until they are released or the test run is over."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a Ctrl-C in the terminal must not end the reaper first
        )

    def guard(self, pid: int, signum: signal.Signals = signal.SIGKILL) -> None:
        """End this process with `signum` when the run is over."""
        self._tell(f"process {pid} {int(signum)}")

    def release(self, pid: int) -> None:
        """The process has ended: its number may be given to another one."""
        self._tell(f"release {pid} 0")

    def folder(self, path: Path) -> None:
        """Remove this folder when the run is over."""
        self._tell(f"folder 0 {path}")

    def close(self) -> None:
        """End what is still guarded, and the reaper."""
        self._process.communicate(timeout=GRACE * 3)

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


@pytest.fixture(scope="session")
def reaper() -> Iterator[Reaper]:
    """The guard of this test run."""
    guard = Reaper()
    yield guard
    guard.close()


@pytest.fixture(scope="session")
def shared_folder(reaper: Reaper) -> Path:
    """A folder of this run, as `new_folder` makes it."""
    path = new_folder()
    reaper.folder(path)
    return path


def new_folder() -> Path:
    """A folder that every user may read (a database server does not run as root), with a short path (a Unix socket's
    path has about 100 characters)."""
    path = Path(tempfile.mkdtemp(prefix="board-", dir=_folder_for_all()))
    path.chmod(0o755)
    return path


def _folder_for_all() -> Path:
    for candidate in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):
        if candidate.is_dir() and readable_by_all(candidate):
            return candidate
    raise RuntimeError("no temporary folder is open to all users: set TMPDIR to one that is")


def readable_by_all(path: Path) -> bool:
    """Whether any user may enter this folder: every folder above must be open, too."""
    return all(part.stat().st_mode & 0o005 == 0o005 for part in (path, *path.parents))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _reap(lines: Iterator[str]) -> None:
    processes: dict[int, int] = {}
    folders: list[str] = []
    for line in lines:
        what, number, rest = line.rstrip("\n").split(" ", 2)
        if what == "process":
            processes[int(number)] = int(rest)
        elif what == "release":
            processes.pop(int(number), None)
        else:
            folders.append(rest)
    for pid, signum in processes.items():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)
    deadline = time.monotonic() + GRACE
    while any(_alive(pid) for pid in processes) and time.monotonic() < deadline:
        time.sleep(0.02)  # they are no children of ours, so there is nothing to wait on
    for pid in filter(_alive, processes):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _reap(iter(sys.stdin))
