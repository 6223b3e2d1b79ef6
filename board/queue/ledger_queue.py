"""Who goes next, asked of the ledger itself: each lane gets its share, and a slot is kept free for P0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Integer, RowMapping, Select, bindparam, func, select

from board.db.clock import now
from board.db.engine import Database
from board.queue.admission import Admission
from board.queue.gate import Gate
from board.queue.lanes import Rounds
from board.queue.wanted import Room, Scope, Taken, Wanted
from board.tasks.ledger import Ledger
from board.tasks.models import tasks
from board.tasks.states import Pool

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
        self._rounds = Rounds()

    def claim(self, wanted: Wanted) -> Taken:
        """As board.queue.wanted.Queue.claim says."""
        tries, clearings = TRIES, CLEARINGS
        while tries and clearings:
            self._gate.tend(wanted.scope)
            if self._db.is_sqlite and not self._worth_a_turn(wanted):
                break
            with self._db.write() as tx:
                shares, alone = self._share(tx, wanted)
                if not shares:
                    break
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

    def _worth_a_turn(self, wanted: Wanted) -> bool:
        """Whether anything is ready. SQLite's one writer is kept for those who have something to write."""
        with self._db.read() as connection:
            seen = look(connection, wanted.scope, 1)
        return seen.suspect or bool(seen.ready)

    def _share(self, connection: Connection, wanted: Wanted) -> tuple[dict[int, int], bool]:
        """How much each lane gives, and whether it is a suspect that must run alone."""
        scope = wanted.scope
        turns = wanted.slots + wanted.ahead
        seen = look(connection, scope, turns)
        if seen.suspect:
            if wanted.busy and not seen.patient_suspect:
                return {}, False  # take nothing until this claimer is empty: the suspect runs alone
            return dict.fromkeys(scope.lanes, 1), True
        rest = wanted.rest + wanted.ahead
        return self._rounds.share(scope.kind, wanted.weights, turns, rest, seen.ready), False


class Seen(NamedTuple):
    """What is ready. ready: how many tasks in each lane that has any, counted up to a limit.

    suspect: whether a task that must run alone is among them; patient_suspect: one that has waited for so long already
    that it need not run alone.
    """

    ready: dict[int, int]
    suspect: bool
    patient_suspect: bool


def look(connection: Connection, scope: Scope, limit: int) -> Seen:
    """All that a sharing-out needs to know, in one statement: with lanes of any length it reads a few index entries."""
    statement = _looking(scope.pool, scope.types, scope.paused, tuple(scope.lanes), scope.begun)
    suspect, patient, *counts = connection.execute(statement, {"most": limit}).one()
    ready = {lane: count for lane, count in zip(scope.lanes, counts, strict=True) if count}
    return Seen(ready, suspect, patient)


@lru_cache(maxsize=100)
def _looking(
    pool: Pool, types: tuple[str, ...] | None, paused: tuple[str, ...], lanes: tuple[int, ...], begun: tuple[str, ...]
) -> Select[Any]:
    """Made once for each scope: making it takes longer than its execution."""
    scope = Scope(pool, types, paused, lanes, begun)
    alone = suspects(scope)
    counts = []
    for lane in lanes:
        some = select(tasks.c.id).where(tasks.c.lane == lane, *scope.ready()).limit(bindparam("most", type_=Integer()))
        counts.append(select(func.count()).select_from(some.subquery()).scalar_subquery())
    return select(alone.exists(), alone.where(tasks.c.ready_at <= now(-SUSPECT_PATIENCE)).exists(), *counts)


def suspects(scope: Scope) -> Select[int]:
    """The tasks that are ready and must run alone."""
    return select(tasks.c.id).where(tasks.c.lane.in_(scope.lanes), *scope.ready(suspects=True))


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
    most = 1 if suspects else wanted.slots + wanted.ahead
    room = Room(wanted)
    found: list[RowMapping] = []
    for lane in sorted(shares):
        if len(found) >= most:
            break
        number = min(shares[lane], most - len(found))
        found += _of_lane(tx, ledger, admission, wanted.scope, room, lane, number, suspects=suspects)
    admission.close()
    return ledger.claim(tx, found, worker=wanted.worker, lease=wanted.lease, by=wanted.by)


def _of_lane(
    tx: Connection,
    ledger: Ledger,
    admission: Admission,
    scope: Scope,
    room: Room,
    lane: int,
    number: int,
    *,
    suspects: bool,
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
            narrow=[*scope.narrow(), *admission.past([row["id"] for row in found])],
        )
        fitting = room.fitting(candidates)
        admitted = admission.admit(fitting)
        found += admitted
        if len(admitted) == len(candidates) or len(found) == number or len(fitting) < len(candidates):
            break
    if len(admission.refused) > refused:
        if suspects:
            admission.hold()
        else:
            admission.hold(scope, lane)
    return found
