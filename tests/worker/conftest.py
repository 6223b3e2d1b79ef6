import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.rig.board import UNHANDLED, board_environment
from tests.rig.ports import free_port
from tests.rig.reaper import Reaper

SCRIPT = Path(__file__).with_name("worker_process.py")


class WorkerProcess:
    """A worker that can be killed. `log`: all that it has written."""

    def __init__(self, process: subprocess.Popen[bytes], log_file: Path, reaper: Reaper) -> None:
        self._process, self._log_file, self._reaper = process, log_file, reaper
        self.pid = process.pid
        reaper.guard(process.pid)

    @property
    def log(self) -> str:
        return self._log_file.read_text(errors="replace")

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def wait(self, timeout: float = 20.0) -> int:
        code = self._process.wait(timeout)
        self._reaper.release(self.pid)
        return code

    def kill(self) -> None:
        self._process.kill()
        self.wait()

    def terminate(self, timeout: float = 20.0) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self.wait(timeout)


class StartWorker(Protocol):
    """`worker("worker", BOARD_LEASE="1s")`, `worker("up")`: a process of tests/worker/worker_process.py."""

    def __call__(self, role: str = "worker", **env: str) -> WorkerProcess: ...


@pytest.fixture
def worker(database_url: str, tmp_path: Path, reaper: Reaper, pytestconfig: pytest.Config) -> Iterator[StartWorker]:
    """Starts workers on the test's database; none outlives the test, none may have left an error unhandled."""
    started: list[WorkerProcess] = []

    def start(role: str = "worker", **env: str) -> WorkerProcess:
        log_file = tmp_path / f"worker-{len(started) + 1}.log"
        own = {
            "BOARD_DATABASE_URL": database_url,
            "BOARD_LEASE": "1s",
            "BOARD_CONCURRENCY": "2",
            "BOARD_ALLOW_PRIVATE_TARGETS": "127.0.0.1",
            "PYTHONPATH": os.pathsep.join([str(pytestconfig.rootpath), os.environ.get("PYTHONPATH", "")]),
            **env,
        }
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, SCRIPT, role, str(free_port())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=tmp_path,
                env=board_environment(tmp_path, own),
                start_new_session=True,
            )
        started.append(WorkerProcess(process, log_file, reaper))
        return started[-1]

    yield start
    for it in started:
        if it.alive:
            it.kill()
        assert not UNHANDLED.search(it.log), it.log[-5000:]
