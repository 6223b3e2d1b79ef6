"""Keys that were looked up a moment ago: a program sends the same one with each of its requests.

A key that is revoked, or gets other limits, is forgotten here at once in the process that does it. Another process, and
one whose database is changed by `board keys revoke`, finds out within KNOWN_SECONDS.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from board.access import keys
from board.access.rights import Actor
from board.access.tokens import digest
from board.db.engine import Database

# So long a revoked key may still open other processes; a program that works hard asks a hundred times in it.
KNOWN_SECONDS = 1.0
MOST = 1000  # keys in use at the same time; with more, those of the last second are looked up again


class _Known(NamedTuple):
    actor: Actor
    until: float  # of this process's monotonic clock
    change: int  # how many changes of keys this process had made before it was looked up


class KnownKeys:
    """One per process, callable from any thread. bootstrap: BOARD_BOOTSTRAP_API_KEY, "" for none."""

    def __init__(self, db: Database, bootstrap: str) -> None:
        self._db, self._bootstrap = db, bootstrap
        self._known: dict[str, _Known] = {}  # by the digest: no secret is kept

    def known(self, secret: str) -> Actor | None:
        """Who holds this secret, if that was found out just now. Asks no database."""
        found = self._known.get(digest(secret))
        if found is None or found.change != keys.changes() or time.monotonic() >= found.until:
            return None
        return found.actor

    def find(self, secret: str) -> Actor | None:
        """Who holds this secret; None for an unknown or revoked key."""
        if (actor := self.known(secret)) is not None:
            return actor
        # Both before the question: what is changed meanwhile may be missing in its answer.
        change, until = keys.changes(), time.monotonic() + KNOWN_SECONDS
        with self._db.read() as connection:
            actor = keys.find(connection, secret, self._bootstrap)
        if actor is not None:
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[digest(secret)] = _Known(actor, until, change)
        return actor
