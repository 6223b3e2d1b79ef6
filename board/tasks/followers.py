"""Word of every move to whoever must act on it inside the same transaction: reviews, the outbox, wake-ups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from sqlalchemy import Connection, RowMapping

from board.tasks.history import By
from board.tasks.states import AT_REST, RULES, TERMINAL, Move, Status

_TO = {move: rule.to for move, rule in RULES.items()}


@dataclass(slots=True)  # not frozen: made for every move, and that takes a third of the time
class Moved:
    """A move that has just been made. `task`: the whole row of `tasks` after it."""

    move: Move
    task: RowMapping
    source: Status | None
    by: By
    note: str | None
    data: dict[str, Any] | None

    @property
    def status(self) -> Status:
        return _TO[self.move]

    @property
    def closes(self) -> bool:
        return self.status in TERMINAL


@runtime_checkable
class FollowsMany(Protocol):
    """A follower that deals with many moves cheaper than with each by itself."""

    def all(self, tx: Connection, moves: Sequence[Moved]) -> None: ...


Follower = Callable[[Connection, Moved], None]


class When:
    """A follower that hears of some moves only."""

    def __init__(self, moves: Collection[Move], follower: Follower) -> None:
        self._moves, self._follower = frozenset(moves), follower

    def __call__(self, tx: Connection, moved: Moved) -> None:
        if moved.move in self._moves:
            self._follower(tx, moved)

    def all(self, tx: Connection, moves: Sequence[Moved]) -> None:
        for moved in moves:
            if moved.move in self._moves:
                self._follower(tx, moved)


Placed = Callable[[Connection, Sequence[RowMapping]], None]
Before = Callable[[Connection, Sequence[RowMapping]], None]


class Followed:
    """What has followers. They are called in order; an exception of one undoes the move with all that followed.

    placed: told of waiting tasks whose place in line has changed without a move: lane, rank or ready_at.
    before: told of tasks at rest whose rows have just been locked, before anything about them changes.
    """

    def __init__(self, followers: Sequence[Follower] = ()) -> None:
        self.followers: list[Follower] = list(followers)
        self.placed: list[Placed] = []
        self.before: list[Before] = []

    def tell_places(self, tx: Connection, rows: Sequence[RowMapping]) -> None:
        """rows: of `tasks`, as they are now; those that do not wait are nobody's concern."""
        for follower in self.placed:
            follower(tx, rows)

    def tell_before(self, tx: Connection, rows: Sequence[RowMapping]) -> None:
        """rows: of `tasks`, locked; those that are not at rest are nobody's concern."""
        if resting := [row for row in rows if row["status"] in AT_REST]:
            for it in self.before:
                it(tx, resting)

    def _follow(self, tx: Connection, moved: Moved) -> None:
        for follower in self.followers:
            follower(tx, moved)

    def _follow_all(self, tx: Connection, moves: Sequence[Moved]) -> None:
        """The same for moves of many tasks. A follower that has `all` is told of them in one go."""
        for follower in self.followers:
            if isinstance(follower, FollowsMany):
                follower.all(tx, moves)
                continue
            for moved in moves:
                follower(tx, moved)
