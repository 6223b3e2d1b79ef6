"""What the command line says when something fails: one plain sentence, never a traceback."""

from __future__ import annotations

import traceback

from sqlalchemy.exc import DatabaseError

from board.access.errors import AccessError, WrongKey
from board.access.rights import Forbidden
from board.db.migrate import SchemaError
from board.settings import SettingsError

# Errors whose text is written for people.
EXPECTED = (AccessError, Forbidden, SchemaError, SettingsError, WrongKey)


def sentence(error: Exception) -> str:
    """What to print for an error. One that nobody foresaw names its place, so that it can be reported."""
    if isinstance(error, EXPECTED):
        return str(error)
    if isinstance(error, DatabaseError):  # only the driver's first line: the rest repeats the statement and its values
        reason = str(error.orig).strip().splitlines()[0].rstrip(".")
        return f"The database does not answer as it should: {reason}. Check BOARD_DATABASE_URL."
    if isinstance(error, OSError):
        return f"{error.filename or 'The operating system'}: {error.strerror or type(error).__name__}."
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"Unexpected error, please report it: {type(error).__name__} in {place.name} "
        f"({place.filename}, line {place.lineno})."  # not its text, which may hold anything
    )
