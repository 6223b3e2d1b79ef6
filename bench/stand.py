"""Where measurements stand: a folder, a PostgreSQL, and processes that end with it.

The PostgreSQL is the one of BOARD_TEST_DATABASE_URL, or one from the wheel with the settings it is installed with; the
tests' own server writes nothing to disk and never vacuums, which would flatter everything.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg

from board.db.migrate import upgrade
from tests.rig.board import BoardProcess, board_command, board_environment
from tests.rig.ports import free_port
from tests.rig.postgres import SETTINGS, Postgres, PostgresServer, wheel_binaries
from tests.rig.reaper import Reaper, new_folder

AS_INSTALLED = SETTINGS | {
    "fsync": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "max_wal_size": "1GB",
}


class Stand:
    """Makes databases and starts processes; `close()` ends and drops them all.

    programs: the folder of PostgreSQL's own programs, if it is known.
    """

    def __init__(self, folder: Path, postgres: Postgres, reaper: Reaper, programs: Path | None) -> None:
        self.folder, self.programs = folder, programs
        self._postgres, self._reaper = postgres, reaper
        self._template: str | None = None
        self._made: list[str] = []
        self._running: list[BoardProcess] = []

    def empty_postgres(self) -> str:
        """The URL of a new database without any table."""
        self._made.append(self._postgres.create())
        return self._made[-1]

    def postgres(self) -> str:
        """The URL of a new database with the board's tables."""
        if self._template is None:
            self._template = self.empty_postgres()
            upgrade(self._template)
        self._made.append(self._postgres.create(template=self._template))
        return self._made[-1]

    def sqlite(self) -> str:
        """The same in a file."""
        url = f"sqlite:///{self.place() / 'board.db'}"
        upgrade(url)
        return url

    def place(self) -> Path:
        """A new folder."""
        path = self.folder / uuid4().hex[:8]
        path.mkdir()
        return path

    def board_process(self, folder: Path, *arguments: str, env: Mapping[str, str]) -> BoardProcess:
        """A process of the board, not waited for; roles with an address get a free port."""
        port = free_port()
        address = [] if arguments[0] == "worker" else ["--port", str(port)]
        log_file = folder / f"{arguments[0]}-{uuid4().hex[:4]}.log"
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                [*board_command(), *arguments, *address],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=board_environment(folder, env),
                start_new_session=True,
            )
        started = BoardProcess(process, f"http://127.0.0.1:{port}", log_file, self._reaper)
        self._running.append(started)
        return started

    @property
    def guard(self) -> Reaper:
        """Ends what it is told of when this process is gone, however it went."""
        return self._reaper

    @contextmanager
    def eager_vacuum(self) -> Iterator[None]:
        """Autovacuum looks once a second. Not on a server of somebody else, who may have forbidden it."""
        if self.programs is None:
            yield
            return
        with psycopg.connect(self.empty_postgres(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET autovacuum_naptime = '1s'")
            connection.execute("SELECT pg_reload_conf()")
            try:
                yield
            finally:
                connection.execute("ALTER SYSTEM RESET autovacuum_naptime")
                connection.execute("SELECT pg_reload_conf()")

    def close(self) -> None:
        for process in self._running:
            process.stop()
        for url in reversed(self._made):
            self._postgres.drop(url)


@contextmanager
def a_stand() -> Iterator[Stand]:
    """One for a run of `make bench`."""
    reaper = Reaper()
    folder = new_folder()
    reaper.folder(folder)
    try:
        if url := os.environ.get("BOARD_TEST_DATABASE_URL"):
            stand = Stand(folder, Postgres(url.replace("postgresql+psycopg://", "postgresql://")), reaper, None)
        else:
            programs = wheel_binaries(folder)
            server = PostgresServer(folder / "postgres", reaper, programs, AS_INSTALLED)
            server.start()
            stand = Stand(folder, Postgres(server.url()), reaper, programs)
        try:
            yield stand
        finally:
            stand.close()
    finally:
        reaper.close()
