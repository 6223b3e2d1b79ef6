"""The one protocol of the queues: what a claimer asks for, and what it gets. The ledger decides behind each of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy import ColumnElement, Connection, RowMapping

from board.queue.lanes import DEFAULT_WEIGHTS, LANES
from board.tasks.claiming import claimable
from board.tasks.history import By
from board.tasks.models import tasks
from board.tasks.states import Pool

Within = Callable[[Connection, Sequence[RowMapping]], None]


@dataclass(frozen=True, slots=True)
class Scope:
    """What one claimer may take. Empty or None: no limit."""

    pool: Pool = Pool.BOARD
    only_types: Sequence[str] | None = None
    without_types: Collection[str] = ()  # paused ones
    only_lanes: Sequence[int] | None = None
    # Types that this claimer cannot do: left to others, but for what was begun already. A call of that may be out, and
    # where nobody is left who could ask about it, a person must be told.
    only_begun: Collection[str] = ()

    @property
    def lanes(self) -> Sequence[int]:
        return LANES if self.only_lanes is None else self.only_lanes

    @property
    def types(self) -> tuple[str, ...] | None:
        return None if self.only_types is None else tuple(self.only_types)

    @property
    def paused(self) -> tuple[str, ...]:
        return tuple(sorted(self.without_types))

    @property
    def begun(self) -> tuple[str, ...]:
        return tuple(sorted(self.only_begun))

    @property
    def kind(self) -> Hashable:
        """Equal for claimers that may take the same tasks, whatever is paused just now."""
        return self.pool, frozenset(self.only_types or ()), frozenset(self.lanes)

    def narrow(self) -> list[ColumnElement[bool]]:
        found: list[ColumnElement[bool]] = []
        if self.only_types is not None:
            found.append(tasks.c.type.in_(self.only_types))
        if self.without_types:
            found.append(tasks.c.type.not_in(self.without_types))
        if self.only_begun:
            found.append(tasks.c.type.not_in(self.only_begun) | (tasks.c.lease_token > 0))
        return found

    def ready(self, *, suspects: bool = False) -> list[ColumnElement[bool]]:
        return [*claimable(self.pool, suspects=suspects), *self.narrow()]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One claimer's wish.

    slots: how many tasks it can begin. rest: how many of them P1 to P3 may take together, because a slot is kept for a
    rush order. lease: seconds. busy: it runs other work, beside which a suspect is not begun unless it has waited long.
    ahead: so many more may be claimed that find no slot yet, if they are expected to end at once: `swift` says it of a
    candidate. A queue may leave these out.
    by: who claims, left out the worker of that name. within: called with the claimed rows inside the transaction.
    """

    scope: Scope
    slots: int
    rest: int
    worker: str
    lease: float
    weights: Sequence[int] = DEFAULT_WEIGHTS
    busy: bool = False
    ahead: int = 0
    swift: Callable[[RowMapping], bool] = lambda _: False
    by: By | None = None
    within: Within | None = None


class Room:
    """For one claim: which candidates find a place, in their order. With nothing claimed ahead all do, because no more
    are asked for than there are slots."""

    def __init__(self, wanted: Wanted) -> None:
        self._free, self._rest = wanted.slots, wanted.rest
        self._swift = wanted.swift if wanted.ahead else None

    def fitting(self, rows: Sequence[RowMapping]) -> Sequence[RowMapping]:
        """The candidates up to the first that needs a slot and gets none."""
        if self._swift is None:
            return rows
        for number, row in enumerate(rows):
            if self._swift(row):
                continue
            if self._free <= 0 or (row["lane"] != 0 and self._rest <= 0):
                return rows[:number]
            self._free -= 1
            self._rest -= row["lane"] != 0
        return rows


@dataclass(frozen=True, slots=True)
class Taken:
    """The claimed tasks, whole rows, in the order in which they begin. alone: it is one suspect, to be run alone.

    again: with no rows, after so many seconds a limit lets more in; None: nothing is known.
    """

    rows: Sequence[RowMapping] = field(default_factory=list)
    alone: bool = False
    again: float | None = None


class Queue(Protocol):
    """Who goes next. One object a process: it remembers whose turn it is."""

    def claim(self, wanted: Wanted) -> Taken:
        """Claim ready work by the lanes' shares, in one transaction. Empty when there is none."""
