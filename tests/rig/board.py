"""The board as its users run it: real processes of the `board` command."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Protocol

import httpx2
import pytest

from tests.rig.need import missing
from tests.rig.ports import free_port
from tests.rig.reaper import Reaper

API_KEY = "a-key-for-tests-with-all-scopes"
START_TIMEOUT = 60.0  # seconds; a start with migrations takes about three
STOP_TIMEOUT = 20.0
# What a log must not hold: an error that nobody handled.
UNHANDLED = re.compile(r"Traceback \(most recent call last\)|was never awaited|Task exception was never retrieved")


def api(base: str, key: str = API_KEY) -> httpx2.Client:
    """A client for the HTTP API: `api(board.url).post("/tasks", json={...})`."""
    return httpx2.Client(
        base_url=f"{base}/api/v1", headers={"Authorization": f"Bearer {key}"}, timeout=30, trust_env=False, verify=False
    )


def board_environment(folder: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a board with its own data in `folder`, untouched by the developer's own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BOARD_")}
    own = {
        "BOARD_DATA_DIR": str(folder / "data"),
        "BOARD_DATABASE_URL": f"sqlite:///{folder / 'data' / 'board.db'}",
        "BOARD_BOOTSTRAP_API_KEY": API_KEY,
        "PYTHONUNBUFFERED": "1",
    }
    return {**kept, **own, **(env or {})}


def board_command() -> list[str]:
    """How to call the board here. Its entry points are needed, so it must be installed."""
    try:
        metadata.distribution("ai-task-board")
    except metadata.PackageNotFoundError:
        missing("the board's command", "install the project (make test, or pip install -e .)")
    script = Path(sys.executable).with_name("board")
    return [str(script)] if script.exists() else [sys.executable, "-c", "from board.cli import main; main()"]


class BoardProcess:
    """One running process of the board."""

    def __init__(
        self, process: subprocess.Popen[bytes], url: str, log_file: Path, reaper: Reaper, role: str = "up"
    ) -> None:
        self.url = url
        self.role = role
        self.pid = process.pid
        self.log_file = log_file
        self._process = process
        self._reaper = reaper
        self._ended = threading.Event()
        self._asked = False
        reaper.guard(process.pid)

    @property
    def log(self) -> str:
        """What it has written so far, standard output and errors together."""
        return self.log_file.read_text(errors="replace")

    @property
    def api(self) -> httpx2.Client:
        """A client with the bootstrap key."""
        return api(self.url)

    def wait(self, timeout: float = STOP_TIMEOUT) -> int:
        """Wait until it has ended by itself; its exit code."""
        code = self._process.wait(timeout)
        if not self._ended.is_set():
            self._ended.set()
            self._reaper.release(self.pid)
        return code

    def signal(self, signum: signal.Signals) -> None:
        """Send any signal, such as SIGSTOP."""
        self._process.send_signal(signum)

    def stop(self, timeout: float = STOP_TIMEOUT) -> int:
        """End it as a service manager does: SIGTERM, and SIGKILL when it has not ended in time. Its exit code."""
        self.ask_to_stop()
        try:
            return self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            pytest.fail(f"the board did not stop within {timeout} s of SIGTERM:\n{self.log[-3000:]}", pytrace=False)

    def ask_to_stop(self) -> None:
        """SIGTERM, once; a second one would cut the stop short."""
        if self._process.poll() is None and not self._asked:
            self._asked = True
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()

    def kill(self) -> None:
        """SIGKILL: no clean-up of any kind, as when the machine is switched off."""
        self._process.kill()
        self.wait()

    def wait_until_up(self) -> None:
        """Wait until it does its work. Several that are needed are started with `wait=False` and then waited for."""
        if self.role == "worker":
            self.wait_for_log("The worker ")
        else:
            self.wait_until_healthy()

    def wait_until_healthy(self) -> None:
        """Wait until /healthz answers 200."""
        with httpx2.Client(trust_env=False, verify=False, timeout=5) as client:

            def healthy() -> bool:
                try:
                    return client.get(f"{self.url}/healthz").status_code == 200
                except httpx2.TransportError:
                    return False

            self._wait_for(healthy, "did not answer", START_TIMEOUT)

    def wait_for_log(self, text: str, timeout: float = START_TIMEOUT) -> None:
        """Wait until it has written this."""
        self._wait_for(lambda: text in self.log, f"did not write {text!r}", timeout)

    def _wait_for(self, condition: Callable[[], bool], failure: str, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"the board {failure} within {timeout} s:\n{self.log[-3000:]}", pytrace=False)
            try:
                code = self._process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail(f"the board ended with exit code {code}:\n{self.log[-3000:]}", pytrace=False)


class StartBoard(Protocol):
    """`board_process("up", "--demo")`, `board_process("worker", env={…}, database_url=url, wait=False)`."""

    def __call__(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        database_url: str | None = None,
        wait: bool = True,
        allow_traceback: bool = False,
    ) -> BoardProcess: ...


@pytest.fixture
def board_process(tmp_path: Path, reaper: Reaper) -> Iterator[StartBoard]:
    """Start processes of the board; they share one data folder. All are ended after the test.

    The roles with an address get a free port; each is waited for until it is up (`wait=False`: it is not). The test
    fails where a log holds an error that nobody handled, unless `allow_traceback`.
    """
    started: list[tuple[BoardProcess, bool]] = []

    def start(
        *arguments: str,
        env: Mapping[str, str] | None = None,
        database_url: str | None = None,
        wait: bool = True,
        allow_traceback: bool = False,
    ) -> BoardProcess:
        role = arguments[0]  # up, api or worker
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        own = {"BOARD_PUBLIC_URL": url, **({"BOARD_DATABASE_URL": database_url} if database_url else {}), **(env or {})}
        port_options = [] if role == "worker" else ["--port", str(port)]
        log_file = tmp_path / f"{role}-{len(started) + 1}.log"
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                [*board_command(), *arguments, *port_options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=tmp_path,
                env=board_environment(tmp_path, own),
                start_new_session=True,
            )
        board = BoardProcess(process, url, log_file, reaper, role)
        started.append((board, allow_traceback))
        if wait:
            board.wait_until_up()
        return board

    yield start
    for board, _ in reversed(started):
        board.ask_to_stop()  # all together: each takes a second or two to leave
    for board, _ in reversed(started):
        board.stop()
    for board, allow_traceback in started:
        if not allow_traceback and UNHANDLED.search(board.log):
            pytest.fail(f"an error that nobody handled in {board.log_file.name}:\n{board.log[-5000:]}", pytrace=False)


RunBoard = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_board(tmp_path: Path) -> RunBoard:
    """Run one command of the board to its end: `run_board("keys", "create", "n8n", env={…})`; never raises."""

    def run(
        *arguments: str, env: Mapping[str, str] | None = None, input: str | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*board_command(), *arguments],
            input=input or "",
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=board_environment(tmp_path, env),
            timeout=timeout,
            check=False,
        )

    return run
