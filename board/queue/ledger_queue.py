"""Who goes next, asked of the ledger itself: each lane gets its share, and a slot is kept free for P0."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, RowMapping, Select, func, select

from board.db.clock import now
from board.db.engine import Database
from board.queue.admission import Admission
from board.queue.gate import Gate
from board.queue.lanes import Shares
from board.queue.wanted import Scope, Taken, Wanted
from board.tasks.ledger import Ledger
from board.tasks.models import tasks

# Others may take what was just seen; after so many looks an empty answer is honest enough, and the claimer asks again.
TRIES = 3
# So often work that limits hold back is cleared away in one claim, a thousand tasks at a time, before it ends.
CLEARINGS = 20
# So often one lane is looked at past what limits hold back, in one transaction. Each look leaves out one limit more.
LOOKS_PAST = 10
# A suspect waits so long for a busy worker to be empty. Then it begins beside what still runs: being its neighbour once
# costs an innocent task one of its own crashes at most, and nothing else may wait for ever behind long work.
SUSPECT_PATIENCE = 30.0


class LedgerQueue:
    """board.queue.wanted.Queue without anything but the database."""

    def __init__(self, db: Database, ledger: Ledger, gate: Gate) -> None:
        self._db, self._ledger, self._gate = db, ledger, gate
        self._shares = Shares()
        self._turn = threading.Lock()  # the shares are one memory for all who claim from this process

    def claim(self, wanted: Wanted) -> Taken:
        """As board.queue.wanted.Queue.claim says."""
        tries, clearings = TRIES, CLEARINGS
        while tries and clearings:
            self._gate.tend(wanted.scope)
            with self._db.read() as connection:
                shares, alone = self._look(connection, wanted)
            if not shares:
                break
            with self._db.write() as tx:
                admission = self._gate.admission(tx)
                rows = take(tx, self._ledger, admission, wanted, shares, suspects=alone)
                if rows and wanted.within is not None:
                    wanted.within(tx, rows)
                self._gate.look_soon(tx, set(admission.refused.values()))
            if rows:
                return Taken(rows, alone)
            if admission.refused:
                clearings -= 1
            else:
                tries -= 1
        return Taken(again=self._gate.opens_in(wanted.scope))

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
    tx: Connection,
    ledger: Ledger,
    admission: Admission,
    wanted: Wanted,
    shares: Mapping[int, int],
    *,
    suspects: bool = False,
) -> Sequence[RowMapping]:
    """Claim what each lane was given, urgent lanes first, together at most what is wanted and limits allow.

    suspects: only tasks that must run alone, and only one.
    """
    most = 1 if suspects else wanted.slots
    found: list[RowMapping] = []
    for lane in sorted(shares):
        if len(found) >= most:
            break
        number = min(shares[lane], most - len(found))
        found += _of_lane(tx, ledger, admission, wanted.scope, lane, number, suspects=suspects)
    admission.close()
    return ledger.claim(tx, found, worker=wanted.worker, lease=wanted.lease, by=wanted.by)


def _of_lane(
    tx: Connection, ledger: Ledger, admission: Admission, scope: Scope, lane: int, number: int, *, suspects: bool
) -> list[RowMapping]:
    """The first of a lane that may start. What limits refuse leaves the line, and is looked past."""
    found: list[RowMapping] = []
    refused = len(admission.refused)
    for _ in range(LOOKS_PAST):
        candidates = ledger.candidates(
            tx,
            lane=lane,
            limit=number - len(found),
            suspects=suspects,
            pool=scope.pool,
            narrow=[*scope.narrow(), *admission.past()],
        )
        admitted = admission.admit(candidates)
        found += admitted
        if len(admitted) == len(candidates) or len(found) == number:
            break
    if len(admission.refused) > refused:
        if suspects:
            admission.hold()
        else:
            admission.hold(scope, lane)
    return found
