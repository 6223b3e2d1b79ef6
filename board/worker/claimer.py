"""Claims work for the free slots of one worker, by the queue's settings as they were last read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from datetime import datetime

from board.db.clock import read_now
from board.db.engine import Database
from board.effects.http import Doors
from board.queue import live
from board.queue.live import QueueRules
from board.queue.wanted import Queue, Scope, Wanted
from board.tasks.states import Pool
from board.worker.holding import Claimed, Holding
from board.worker.holds import Holds
from board.worker.preparing import Preparer, Read
from board.worker.presence import Presence

Found = list[tuple[Holding, list[Claimed]]]


class Claimer:
    """pools: what the worker holds of each kind of slots. weights: of the lanes, where the settings name none.

    Claims are made in a thread, one at a time; the settings are read in others.
    """

    def __init__(
        self,
        db: Database,
        queue: Queue,
        preparer: Preparer,
        holds: Holds,
        presence: Presence,
        pools: Mapping[Pool, Holding],
        doors: Doors,
        *,
        name: str,
        lease: float,
        weights: Sequence[int],
        zone: str,
        only_types: Sequence[str] | None,
        only_lanes: Sequence[int] | None,
    ) -> None:
        self.rules: QueueRules | None = None  # not read yet: nothing is taken, as it may be paused
        self.beyond: Collection[str] = ()  # types whose handler is not installed here: another worker may have it
        self.queue = queue
        self.wake_in: Callable[[float], None] = lambda _: None  # told when a limit opens by time, and nobody tells
        self.holds = holds
        self._db, self._preparer, self._presence = db, preparer, presence
        self._pools, self._doors = pools, doors
        self._name, self._lease, self._zone = name, lease, zone
        self._weights = self._weights_now = weights
        self._only_types, self._only_lanes = only_types, only_lanes
        self._seen: Hashable = None

    def read_rules(self) -> None:
        """Pauses, weights, and what cannot be worked on here."""
        with self._db.read() as connection:
            rules = live.read(connection)
            self.beyond = self._preparer.beyond(connection)
            self.holds.refresh(connection)
            self._weights_now = rules.weights_at(read_now(connection), self._zone, self._weights)
        self.rules = rules

    def follow_clock(self, moment: datetime) -> None:
        """The weights of this moment: they may change by the hour."""
        assert self.rules is not None
        self._weights_now = self.rules.weights_at(moment, self._zone, self._weights)

    def take_all(self) -> Found:
        """Claim for the slots of each pool. Empty when there is nothing to begin."""
        found: Found = []
        for pool, holding in self._pools.items():
            try:
                claimed = self._take(pool, holding)
            except Exception:
                if not found:
                    raise
                break  # what was claimed for the others must begin; the next look meets the same trouble, and tells it
            if claimed:
                found.append((holding, claimed))
        return found

    def _take(self, pool: Pool, holding: Holding) -> list[Claimed]:
        rules = self.rules
        alone = any(it.alone is not None for it in self._pools.values())
        if holding.stopping or alone or rules is None or rules.paused or (room := holding.room()) is None:
            return []
        read: list[Read | Exception] = []
        taken = self.queue.claim(
            Wanted(
                scope=Scope(
                    pool,
                    only_types=self._only_types,
                    without_types=rules.paused_types,
                    only_begun={*self.beyond, *self.holds.types},
                    only_lanes=self._only_lanes,
                ),
                slots=room.free,
                rest=room.rest,
                ahead=room.ahead,
                swift=holding.ahead.swift,
                worker=self._name,
                lease=self._lease,
                weights=self._weights_now,
                busy=any(it.busy for it in self._pools.values()),
                within=lambda tx, rows: read.extend(self._preparer.read(tx, rows)),
            )
        )
        if taken.again is not None:
            self.wake_in(taken.again)
        holding.hold(taken.rows, room, alone=taken.alone)
        for row in taken.rows:
            self._presence.took(row["lane"])
        return list(zip(taken.rows, self._preparer.prepare(taken.rows, read, self._doors), strict=True))
