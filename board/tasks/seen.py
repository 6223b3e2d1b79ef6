"""What one read of the database sees, asked for once however many bodies are checked against it."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

from sqlalchemy import Connection

from board.catalogue.store import Catalogue, LoadedType
from board.db.clock import read_now


class Seen:
    """For one connection, and no longer than what it reads is to be taken for the present."""

    def __init__(self, connection: Connection, catalogue: Catalogue) -> None:
        self.connection = connection
        self._catalogue = catalogue
        self._types: dict[str, LoadedType] = {}

    def type(self, name: str) -> LoadedType:
        """The newest version of a type. Raises UnknownType."""
        found = self._types.get(name)
        if found is None:
            found = self._types[name] = self._catalogue.current(self.connection, name)
        return found

    @cached_property
    def moment(self) -> datetime:
        return read_now(self.connection)
