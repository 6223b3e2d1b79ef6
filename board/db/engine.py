"""One database, two kinds: SQLite on one machine, PostgreSQL when it grows. Both pass the same tests.

Everything is plain SQLAlchemy Core on synchronous connections; asynchronous code calls it in a thread. `read()` gives a
consistent view, `write()` one transaction. What must happen only after the commit (wake-ups) goes to `after_commit`.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import IsolationLevel
from sqlalchemy.exc import InterfaceError, InvalidatePoolError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry

from board.db import clock

# How long a writer of another process is waited for. Several workers on one SQLite file each hold the lock for
# milliseconds; 30 s is long enough that "database is locked" means a process that hangs.
SQLITE_BUSY_SECONDS = 30.0
# For reading and for writing each: so many stay open, and with those that close again it is enough for FastAPI's 40
# threads and the worker's own; more would only queue inside PostgreSQL.
POOL_SIZE = 10
POOL_OVERFLOW = 40
# A connection that answered so long ago, or whose server has sent something since (its farewell, most likely), is asked
# whether it is still there before it is used. To ask each time would cost as much as a query.
TRUSTED_SECONDS = 1.0
# A server that was switched off, or a network that swallows its answers, is noticed within about 20 s instead of the
# system's two hours: first quiet seconds, then three questions; and data that nobody confirms for 20 s (milliseconds).
NOTICE_SILENCE: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}


# The database cannot be asked just now: it is down, out of connections, or (SQLite) locked by a process that hangs.
AWAY: tuple[type[Exception], ...] = (OperationalError, InterfaceError, PoolTimeout)


def is_away(error: BaseException) -> bool:
    """Whether asking again at once is no use. Two transactions that waited for each other are no such case."""
    deadlock = getattr(getattr(error, "orig", None), "sqlstate", None) == "40P01"
    return isinstance(error, AWAY) and not deadlock


class Database:
    """The door to the database. Make one per process; `close()` it at the end."""

    def __init__(self, url: str) -> None:
        self.url = normal_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        # SQLite admits one writer at a time. Waiting in line here is fair and immediate; SQLite's own waiting polls.
        self._turn = threading.Lock() if self.is_sqlite else None
        # Two pools, so that a connection keeps its kind of transaction: to change that costs more than a query.
        self._reader = _sqlite(self.url, "BEGIN") if self.is_sqlite else _postgres(self.url, "REPEATABLE READ")
        self._writer = _sqlite(self.url, "BEGIN IMMEDIATE") if self.is_sqlite else _postgres(self.url, "READ COMMITTED")

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One moment of the database, however many statements read it; nothing that is written is kept."""
        with self._reader.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction: commits at the end, rolls back on any exception, then runs what `after_commit` collected."""
        followers: dict[Callable[..., None], list[Any] | None] = {}  # in their order, each once; with what it is told
        if self._turn is not None:
            with self._turn, self._writer.begin() as connection:
                connection.info["after_commit"] = followers
                yield connection
        else:
            with self._writer.begin() as connection:
                connection.info["after_commit"] = followers
                yield connection
        for follower, items in followers.items():
            follower() if items is None else follower(items)

    def close(self) -> None:
        self._reader.dispose()
        self._writer.dispose()


def after_commit(tx: Connection, follower: Callable[[], None]) -> None:
    """Run `follower` once the transaction of `write()` has been committed; never if it is rolled back.

    The same one is run once, however often it was asked for in this transaction.
    """
    tx.info["after_commit"][follower] = None


Item = TypeVar("Item")


def after_commit_with(tx: Connection, follower: Callable[[Sequence[Item]], None], items: Iterable[Item]) -> None:
    """The same for one that is told: it is run once, with all that was given for it in this transaction."""
    tx.info["after_commit"].setdefault(follower, []).extend(items)


def normal_url(text: str) -> URL:
    """The address with its driver written out: SQLite by the standard library, PostgreSQL by psycopg 3."""
    url = make_url(text)
    if url.get_backend_name() in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    return url.set(drivername="sqlite")


def _postgres(url: URL, isolation: IsolationLevel) -> Engine:
    engine = create_engine(
        url,
        isolation_level=isolation,
        pool_size=POOL_SIZE,
        max_overflow=POOL_OVERFLOW,
        hide_parameters=True,
        # The zone: times come back in UTC, as they are compared and shown.
        connect_args={"options": "-c timezone=UTC", "connect_timeout": 10, **NOTICE_SILENCE},
    )

    @event.listens_for(engine, "connect")
    @event.listens_for(engine, "checkin")
    def _note(_raw: Any, record: ConnectionPoolEntry) -> None:
        record.info["used"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _ask(raw: Any, record: ConnectionPoolEntry, _holder: Any) -> None:
        if time.monotonic() - record.info["used"] > TRUSTED_SECONDS or _has_news(raw.fileno()):
            try:
                engine.dialect.do_ping(raw)
            except engine.dialect.loaded_dbapi.Error as error:
                raise InvalidatePoolError from error  # the pool makes a new one

    return engine


def _has_news(socket: int) -> bool:
    """Whether something has come in that nobody waits for."""
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))


def _sqlite(url: URL, begin: str) -> Engine:
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url,
        pool_size=POOL_SIZE,
        max_overflow=POOL_OVERFLOW,
        hide_parameters=True,  # errors are logged, and the values in a statement are people's data
        connect_args={"timeout": SQLITE_BUSY_SECONDS, "check_same_thread": False, "isolation_level": None},
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        # The driver's own transaction mode runs SELECT outside a transaction, which loses updates: it is switched
        # off (isolation_level None) and every transaction begins explicitly. NORMAL keeps WAL safe against a kill.
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.create_function("board_now", 0, clock.sqlite_now)
        connection.create_function("board_now", 1, clock.sqlite_now)
        # As on PostgreSQL: SQLite's own lower() knows only ASCII, its LIKE knows no case, and strpos() it has not.
        connection.create_function("lower", 1, _lower, deterministic=True)
        connection.create_function("strpos", 2, _strpos, deterministic=True)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _lower(text: str | None) -> str | None:
    return None if text is None else text.lower()


def _strpos(text: str | None, part: str | None) -> int | None:
    return None if text is None or part is None else text.find(part) + 1


def utc(moment: datetime) -> datetime:
    """The same moment in UTC. A time without a zone is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
