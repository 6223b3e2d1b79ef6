"""The leader: of all processes that work on one database, the one that does what only one may do at a time."""

from __future__ import annotations

import logging
import time

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from board.db.clock import now
from board.db.engine import Database
from board.upkeep.models import leaderships

log = logging.getLogger(__name__)

UPKEEP = "upkeep"
# A dead leader is followed within LEASE_SECONDS + LOOK_SECONDS = 13 s; a living one may miss two renewals in a row.
LEASE_SECONDS = 10.0
LOOK_SECONDS = 3.0


class Leader:
    """This process's part in the election. holder: a name that no other process has.

    What the leader does must be harmless when two do it: a process that was suspended still believes in its lease for
    the blink between asking `leads` and acting.
    """

    def __init__(self, db: Database, holder: str, name: str = UPKEEP) -> None:
        self._db, self._holder, self._name = db, holder, name
        self._until = 0.0  # on this process's own monotonic clock

    @property
    def leads(self) -> bool:
        """Whether this process is the leader now. Turns false by itself when the lease could not be renewed."""
        return time.monotonic() < self._until

    def seek(self) -> bool:
        """Take the lease if nobody has it, renew it if it is ours; to be called every LOOK_SECONDS."""
        asked = time.monotonic()  # before the answer: the database counts from later on, so we never believe too long
        with self._db.read() as connection:
            free = self._free(connection)
        if not free:
            self._until = 0.0
            return False
        with self._db.write() as tx:
            won = self._take(tx)
        if won and not self._until:
            log.info("%s leads: it ages tasks and fires schedules", self._holder)
        self._until = asked + LEASE_SECONDS if won else 0.0
        return won

    def release(self, tx: Connection) -> None:
        """At a clean stop: the next one need not wait for the lease to run out."""
        self._until = 0.0
        tx.execute(delete(leaderships).where(leaderships.c.name == self._name, leaderships.c.holder == self._holder))

    def _free(self, connection: Connection) -> bool:
        """A look without any lock: most processes, most of the time, have nothing to write."""
        held = select(leaderships.c.name).where(
            leaderships.c.name == self._name, leaderships.c.holder != self._holder, leaderships.c.until > now()
        )
        return connection.execute(held).first() is None

    def _take(self, tx: Connection) -> bool:
        """Compare and set in one statement: of several that see a free lease, one gets the row."""
        dialect = sqlite if tx.dialect.name == "sqlite" else postgresql
        wanted = dialect.insert(leaderships).values(name=self._name, holder=self._holder, until=now(LEASE_SECONDS))
        statement = wanted.on_conflict_do_update(
            index_elements=["name"],
            set_={"holder": wanted.excluded.holder, "until": wanted.excluded.until},
            where=(leaderships.c.holder == self._holder) | (leaderships.c.until <= now()),
        )
        return tx.execute(statement.returning(leaderships.c.holder)).first() is not None


def current(connection: Connection, name: str = UPKEEP) -> str | None:
    """Who leads now, or None between two leaders."""
    query = select(leaderships.c.holder).where(leaderships.c.name == name, leaderships.c.until > now())
    holder: str | None = connection.execute(query).scalar()
    return holder
