"""Who goes next, asked of the ledger itself: each lane gets its share, and a slot is kept free for P0."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, RowMapping, Select, func, select

from board.db.clock import now
from board.db.engine import Database
from board.queue.lanes import Shares
from board.queue.wanted import Scope, Taken, Wanted
from board.tasks.ledger import Ledger
from board.tasks.models import tasks

# Others may take what was just seen; after so many looks an empty answer is honest enough, and the claimer asks again.
TRIES = 3
# A suspect waits so long for a busy worker to be empty. Then it begins beside what still runs: being its neighbour once
# costs an innocent task one of its own crashes at most, and nothing else may wait for ever behind long work.
SUSPECT_PATIENCE = 30.0


class LedgerQueue:
    """board.queue.wanted.Queue without anything but the database."""

    def __init__(self, db: Database, ledger: Ledger) -> None:
        self._db, self._ledger = db, ledger
        self._shares = Shares()
        self._turn = threading.Lock()  # the shares are one memory for all who claim from this process

    def claim(self, wanted: Wanted) -> Taken:
        """As board.queue.wanted.Queue.claim says."""
        for _ in range(TRIES):
            with self._db.read() as connection:
                shares, alone = self._look(connection, wanted)
            if not shares:
                break
            with self._db.write() as tx:
                rows = take(tx, self._ledger, wanted, shares, suspects=alone)
                if rows and wanted.within is not None:
                    wanted.within(tx, rows)
            if rows:
                return Taken(rows, alone)
        return Taken()

    def _look(self, connection: Connection, wanted: Wanted) -> tuple[dict[int, int], bool]:
        """How much each lane gives, and whether it is a suspect that must run alone."""
        scope = wanted.scope
        if suspects_wait(connection, scope):
            if wanted.busy and not suspects_wait(connection, scope, SUSPECT_PATIENCE):
                return {}, False  # take nothing until this claimer is empty: the suspect runs alone
            return dict.fromkeys(scope.lanes, 1), True
        waiting = ready(connection, scope, wanted.slots)
        with self._turn:
            self._shares.set_weights(wanted.weights)
            return self._shares.share(wanted.slots, wanted.rest, waiting), False


def suspects_wait(connection: Connection, scope: Scope, since: float = 0.0) -> bool:
    """Whether a task that must run alone is ready, for `since` seconds or longer."""
    query = suspects(scope).where(tasks.c.ready_at <= now(-since))
    return connection.execute(query.limit(1)).scalar() is not None


def suspects(scope: Scope) -> Select[int]:
    """The tasks that are ready and must run alone."""
    return select(tasks.c.id).where(tasks.c.lane.in_(scope.lanes), *scope.ready(suspects=True))


def ready(connection: Connection, scope: Scope, limit: int) -> dict[int, int]:
    """How many tasks are ready in each lane, counted up to `limit`: all that a sharing-out needs to know."""
    counted: dict[int, int] = {}
    for lane in scope.lanes:
        some = select(tasks.c.id).where(tasks.c.lane == lane, *scope.ready()).limit(limit).subquery()
        if number := connection.execute(select(func.count()).select_from(some)).scalar_one():
            counted[lane] = number
    return counted


def take(
    tx: Connection, ledger: Ledger, wanted: Wanted, shares: Mapping[int, int], *, suspects: bool = False
) -> Sequence[RowMapping]:
    """Claim what each lane was given, urgent lanes first, together at most what is wanted.

    suspects: only tasks that must run alone, and only one.
    """
    most = 1 if suspects else wanted.slots
    found: list[RowMapping] = []
    for lane in sorted(shares):
        if len(found) >= most:
            break
        found += ledger.candidates(
            tx,
            lane=lane,
            limit=min(shares[lane], most - len(found)),
            suspects=suspects,
            pool=wanted.scope.pool,
            narrow=wanted.scope.narrow(),
        )
    return ledger.claim(tx, found, worker=wanted.worker, lease=wanted.lease, by=wanted.by)
