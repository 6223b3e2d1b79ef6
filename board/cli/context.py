"""What every command starts with: the settings, and a database whose schema fits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from board import settings as all_settings
from board.db import migrate
from board.db.engine import Database
from board.settings import Settings


@dataclass(frozen=True, slots=True)
class Context:
    settings: Settings
    db: Database


@contextmanager
def opened() -> Iterator[Context]:
    """The board of this folder and environment. SettingsError: wrong settings. SchemaError: `board migrate` is due."""
    settings = all_settings.load()
    db = Database(settings.database_url)
    try:
        with db.read() as connection:
            migrate.check(connection)
        yield Context(settings, db)
    finally:
        db.close()
