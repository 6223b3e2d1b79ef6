"""Whether the database is still the one that this process was started on.

One that is merely away is waited for. One that was dropped, emptied or replaced by another board's is gone for good:
to work on would mix two boards, or fail for ever.
"""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from board.access.installation import read_installation_id
from board.db.engine import Database
from board.db.place import sqlite_path

LOOK_SECONDS = 5.0
# A restore drops and fills a database; a look in the wrong moment must not end the process, two in a row may.
LOOKS = 2
_NO_DATABASE, _NO_TABLE = "3D000", "42P01"  # PostgreSQL's codes: invalid_catalog_name, undefined_table


class Watch:
    """Make it when the process starts; `look` every LOOK_SECONDS."""

    def __init__(self, db: Database, installation: str) -> None:
        self._db, self._installation = db, installation
        path = sqlite_path(db.url.render_as_string(hide_password=False))
        self._file = (path, _identity(path)) if path is not None else None
        self._seen = 0

    def look(self) -> str | None:
        """Why this process must end, or None. An error that only means "away" is raised."""
        try:
            reason = self._look()
        except Exception:
            self._seen = 0
            raise
        self._seen = self._seen + 1 if reason else 0
        return reason if self._seen >= LOOKS else None

    def _look(self) -> str | None:
        if self._file is not None and _identity(self._file[0]) != self._file[1]:
            return _sentence(f"its file {self._file[0]} was removed or replaced")
        try:
            with self._db.read() as connection:
                found = read_installation_id(connection)
        except DBAPIError as error:
            if (reason := _gone(error, self._db.url.database or "")) is None:
                raise
            return _sentence(reason)
        return None if found == self._installation else _sentence("another board's database is in its place")


def _sentence(reason: str) -> str:
    return (
        f"The database that this process was started on is gone: {reason}. The process ends; start it again once "
        "BOARD_DATABASE_URL leads to the right database."
    )


def _gone(error: DBAPIError, database: str) -> str | None:
    code = getattr(error.orig, "sqlstate", None)
    text = str(error.orig)
    # A refused connection carries no code, and its text is in the server's language; the name stands in quotes in all.
    refused = re.search(rf'FATAL:.*"{re.escape(database)}".*(does not exist|不存在)', text)
    if code == _NO_DATABASE or refused:
        return f"PostgreSQL has no database {database} any more"
    if code == _NO_TABLE or "no such table" in text:
        return "its tables are gone"
    return None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
