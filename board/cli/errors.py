"""What the command line says when something fails: one plain sentence, never a traceback."""

from __future__ import annotations

import traceback

from pydantic import ValidationError
from sqlalchemy.exc import DatabaseError

from board.access.errors import AccessError, WrongKey
from board.access.rights import Forbidden
from board.backup import BackupRefused
from board.catalogue.apply import BadCatalogue
from board.catalogue.store import UnknownType
from board.db.migrate import SchemaError
from board.db.place import BadPlace
from board.effects.subscriptions import SubscriptionRefused
from board.reports.weekly import NoSuchReport
from board.reports.weeks import BadWeek
from board.review.policy import NotEligible
from board.review.verdict import DecisionRefused
from board.serve import CannotListen
from board.settings import SettingsError
from board.tasks.intake import Duplicate, Problem
from board.tasks.ledger import Stale
from board.tasks.read import BadFilter
from board.tasks.states import IllegalMove
from board.tasks.text import BadJson, NotJson
from board.tasks.visible import NoSuchTask
from board.upkeep.schedules import ScheduleRefused
from board.upkeep.shelf import Busy
from board.worker.presence import SecondHost

# Errors whose text is written for people.
EXPECTED = (
    AccessError,
    BackupRefused,
    BadCatalogue,
    BadFilter,
    BadPlace,
    BadWeek,
    Busy,
    CannotListen,
    DecisionRefused,
    Duplicate,
    Forbidden,
    IllegalMove,
    NoSuchReport,
    NoSuchTask,
    NotEligible,
    NotJson,
    ScheduleRefused,
    SchemaError,
    SecondHost,
    SettingsError,
    Stale,
    SubscriptionRefused,
    UnknownType,
    WrongKey,
)


def sentence(error: Exception) -> str:
    """What to print for an error. One that nobody foresaw names its place, so that it can be reported."""
    if isinstance(error, EXPECTED):
        return str(error)
    if isinstance(error, Problem):
        return str(error) if error.field in str(error) else f"{error.field}: {error}"
    if isinstance(error, BadJson):
        return f"{error.path} {error}."
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        return f"{'.'.join(map(str, fault['loc'])) or 'body'}: {fault['msg'].removeprefix('Value error, ')}."
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
