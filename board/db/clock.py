"""The board's only clock: `board_now()`, asked of the database, so that all processes agree and tests can set it.

On PostgreSQL it is an SQL function made by the first migration; on SQLite a function of the connection. Both take an
optional number of seconds to add. Tests shift SQLite's with `set_offset` and replace PostgreSQL's.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, Connection, func, select

from board.db.types import UtcTime, sqlite_text

_offset = timedelta(0)
_standing: datetime | None = None


def set_offset(seconds: float) -> None:
    """Only for tests: SQLite's clock of this process runs `seconds` ahead of the real one."""
    global _offset  # noqa: PLW0603 - one clock a process is the point
    _offset = timedelta(seconds=seconds)


def stand(moment: datetime | None) -> None:
    """Only for tests: SQLite's clock of this process stands still at a moment; None: it goes again."""
    global _standing  # noqa: PLW0603 - as above
    _standing = moment


def sqlite_now(plus: float = 0.0) -> str:
    return sqlite_text((_standing or datetime.now(UTC)) + _offset + timedelta(seconds=plus))


def now(plus: float | ColumnElement[float] | None = None) -> ColumnElement[datetime]:
    """The SQL expression for the present time, or for `plus` seconds from now."""
    return func.board_now(type_=UtcTime()) if plus is None else func.board_now(plus, type_=UtcTime())


def read_now(connection: Connection) -> datetime:
    """The present time, asked of the database."""
    moment = connection.execute(select(now())).scalar_one()
    assert isinstance(moment, datetime)
    return moment
