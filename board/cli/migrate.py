"""`board migrate`: bring the database's schema up."""

from __future__ import annotations

from board import settings
from board.cli.output import AsJson, print_json
from board.db import migrate as schema
from board.db.engine import Database


def migrate(as_json: AsJson = False) -> None:
    """Bring the database's schema up to this program; safe to run twice and by several at once."""
    url = settings.load().database_url
    schema.upgrade(url)
    db = Database(url)
    try:
        with db.read() as connection:
            revision = schema.revision_of(connection)
    finally:
        db.close()
    if as_json:
        print_json({"schema": revision})
    else:
        print(f"The database is ready (schema {revision}).")
