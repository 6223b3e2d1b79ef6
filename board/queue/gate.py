"""The gate before every claim: limits of types, keys and connections, over all processes.

A task that a limit refuses is taken out of line (`tasks.held_by`), so that nothing behind it is kept waiting. Claimers
let as many in again as there is room: each looks before it counts what is ready, at once for limits of which a task
has just ended here, and every second for all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Connection

from board.catalogue.store import Catalogue
from board.db.clock import read_now
from board.db.engine import Database, after_commit
from board.queue import held, limits_shown, usage
from board.queue.admission import Admission, Fronts, running_by_scope
from board.queue.limits import Rules, Task
from board.queue.usage import NO_END, Forecast, Now
from board.queue.wanted import Scope
from board.tasks.followers import Moved
from board.tasks.ledger import Ledger
from board.tasks.models import tasks
from board.tasks.states import Move, Phase, Status

LOOK_SECONDS = 1.0  # a changed limit, and a place that was given up unseen, are noticed within this time
SOONEST_SECONDS = 0.02  # a rate of more than 50 a second lets in several at a time instead of looking more often
BATCH = 1000  # of a limit that holds no more, so many are let in with each look
MOST_KINDS = 100  # of claimers that are remembered: outside workers may ask for any set of types


@dataclass(slots=True)
class _Look:
    """When claimers of one kind look again, and have looked last; by time.monotonic()."""

    due: float = 0.0
    last: float = 0.0
    opens: bool = False  # a limit that holds something is known to open by time


class Gate:
    """One per process; for any number of threads. It follows the ledger: add it to the followers.

    zone: whose days are counted. The ledger tells its own followers which tasks have left the line or are back in it.
    """

    def __init__(self, db: Database, ledger: Ledger, catalogue: Catalogue, zone: str) -> None:
        self.rules = Rules(catalogue)
        self._db, self._ledger, self._zone = db, ledger, ZoneInfo(zone)
        self._fronts = Fronts()
        self._turn, self._noting = threading.Lock(), threading.Lock()
        self._looks: dict[Hashable, _Look] = {}
        self._noted: dict[str, float] = {}  # scopes that are to be looked at with the next claim, and since when

    def __call__(self, tx: Connection, moved: Moved) -> None:
        self.all(tx, [moved])

    def all(self, tx: Connection, moves: Sequence[Moved]) -> None:
        """A follower: whoever stops running leaves a place."""
        scopes: set[str] = set()
        for moved in moves:
            if moved.source is Status.RUNNING:
                before: Task = moved.task
                if moved.move is Move.PROCEED:
                    kept = {name: before[name] for name in ("type", "type_version", "limit_key")}
                    before = kept | {"phase": Phase.WORK}
                scopes.update(limit.scope for limit in self.rules.of(tx, before) if limit.concurrency is not None)
        self.look_soon(tx, scopes)

    def admission(self, tx: Connection) -> Admission:
        """For the transaction of one claim."""
        return Admission(tx, self.rules, self._zone, self._ledger.tell_places, self._fronts)

    def look_soon(self, tx: Connection, scopes: Collection[str]) -> None:
        """With the next claim after this transaction, look whether these limits have room."""

        def note() -> None:
            moment = time.monotonic()
            with self._noting:
                fresh = {name: at for name, at in self._noted.items() if at > moment - LOOK_SECONDS}
                self._noted = fresh | dict.fromkeys(scopes, moment)

        if scopes:
            after_commit(tx, note)

    def tend(self, scope: Scope) -> None:
        """Let in what there is room for, of what a claimer could take. Cheap where nothing is held."""
        with self._turn:
            look = self._look(scope)
            begin = time.monotonic()
            whole = begin >= look.due
            scopes = [name for name, at in self._noted.items() if at >= look.last]
            if not whole and not scopes:
                return
            look.last = begin
            with self._db.read() as connection:
                if whole:
                    look.due, look.opens = begin + LOOK_SECONDS, False
                    self.rules.refresh(connection)
                    scopes = held.scopes(connection)
                else:
                    scopes = sorted(held.holding(connection, scopes))
                room, opens_at = self._room(connection, scopes, scope) if scopes else ({}, None)
                moment = read_now(connection) if opens_at else None
            if opens_at is not None and moment is not None:
                wait = (opens_at - moment).total_seconds()
                look.due, look.opens = min(look.due, begin + max(SOONEST_SECONDS, wait)), True
            if room:
                with self._db.write() as tx:
                    for name, number in room.items():
                        if rows := held.let_in(tx, name, number, _claimable(scope)):
                            self._ledger.tell_places(tx, rows)

    def opens_in(self, scope: Scope) -> float | None:
        """After how many seconds another claim of this kind may find more, by a rate or a new day; None: not known."""
        look = self._look(scope)
        return max(SOONEST_SECONDS, look.due - time.monotonic()) if look.opens else None

    def shown(self, connection: Connection) -> list[dict[str, Any]]:
        """Every limit with what is used of it and how much it keeps back: board.queue.limits_shown."""
        return limits_shown.shown(connection, self.rules, Now(read_now(connection), self._zone))

    def opening(self, connection: Connection, scopes: Collection[str]) -> dict[str, Forecast]:
        """What can be told of when these limits let in what they hold back. Those that hold no more are left out."""
        self.rules.refresh(connection)
        limits = [limit for limit in map(self.rules.by_scope, scopes) if limit is not None]
        used = usage.read(connection, {limit.row for limit in limits})
        running = running_by_scope(connection, self.rules)
        now = Now(read_now(connection), self._zone)
        return {
            limit.scope: Forecast(
                limit,
                used[limit.row],
                now,
                full=limit.concurrency is not None and running[limit.scope] >= limit.concurrency,
            )
            for limit in limits
        }

    # -- parts --------------------------------------------------------------------------------------------------------

    def _room(
        self, connection: Connection, scopes: Sequence[str], scope: Scope
    ) -> tuple[dict[str, int], datetime | None]:
        """How many each limit may let in, and when the next of those that are shut by rate or day opens."""
        running = running_by_scope(connection, self.rules)
        coming = held.let_in_already(connection, _claimable(scope))
        limits = {name: self.rules.by_scope(name) for name in scopes}
        used = usage.read(connection, {limit.row for limit in limits.values() if limit is not None})
        now = Now(read_now(connection), self._zone)
        room: dict[str, int] = {}
        opening = []
        for name, limit in limits.items():
            if limit is None:  # it holds no more
                room[name] = BATCH
                continue
            at_once = NO_END if limit.concurrency is None else limit.concurrency - running[name]
            by_time = used[limit.row].room(limit, now)
            if (left := min(at_once, by_time, BATCH) - coming.get(name, 0)) > 0:
                room[name] = left
            if by_time < 1 and (at := used[limit.row].opens_at(limit, now)) is not None:
                opening.append(at)
        return room, min(opening, default=None)

    def _look(self, scope: Scope) -> _Look:
        types = None if scope.only_types is None else frozenset(scope.only_types)
        kind = (scope.pool, types, frozenset(scope.without_types), frozenset(scope.lanes))
        if kind not in self._looks:
            if len(self._looks) >= MOST_KINDS:
                self._looks.clear()
            self._looks[kind] = _Look()
        return self._looks[kind]


def _claimable(scope: Scope) -> list[ColumnElement[bool]]:
    """What a claimer could take: for others it lets nothing in, they look for themselves."""
    return [tasks.c.pool == scope.pool, tasks.c.lane.in_(scope.lanes), *scope.narrow()]
