"""Whose turn it is: four lanes share the slots by weighted round robin. Pure: no database, no clock.

A round gives each lane as many turns as its weight, the urgent lanes first. So a burst that fits into a round runs in
the order of its priorities, and under lasting load each lane gets its share of every round. A lane that holds nothing
takes no part and gives its share away; what it did not use is not saved up. What P0 begins in the slot that is kept for
it counts as its turns, too; once it has had them all, the round of the others goes on, and P0 has so many fewer next.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence

LANES = (0, 1, 2, 3)
# P1 to P3 share 5 : 2 : 1; P0 ahead of them is an express lane with twice the rest together.
DEFAULT_WEIGHTS = (16, 5, 2, 1)


# Kinds of claimers that are remembered: outside workers may ask for any set of types.
MOST_KINDS = 100


class Rounds:
    """The memory of one process: the round of each kind of claimer. For any number of threads.

    A kind is whoever may take the same tasks. One that finds nothing begins a new round, and must not do so for another
    that finds plenty: its urgent lanes would come first for ever.
    """

    def __init__(self) -> None:
        self._kinds: dict[Hashable, Shares] = {}
        self._turn = threading.Lock()

    def share(
        self, kind: Hashable, weights: Sequence[int], slots: int, rest: int, ready: Mapping[int, int]
    ) -> dict[int, int]:
        """As Shares.share, by these weights."""
        with self._turn:
            if kind not in self._kinds and len(self._kinds) >= MOST_KINDS:
                self._kinds.pop(next(iter(self._kinds)))
            shares = self._kinds.setdefault(kind, Shares())
            shares.set_weights(weights)
            return shares.share(slots, rest, ready)


class Shares:
    """Who has turns left in this round."""

    def __init__(self, weights: Sequence[int] = DEFAULT_WEIGHTS) -> None:
        self.set_weights(weights)

    def set_weights(self, weights: Sequence[int]) -> None:
        """New weights, from a new round on. ValueError unless there is one of at least 1 for each lane."""
        if len(weights) != len(LANES) or any(weight < 1 for weight in weights):
            raise ValueError("give four weights of at least 1, for P0 to P3")
        wanted = dict(zip(LANES, weights, strict=True))
        if wanted != getattr(self, "_weights", None):
            self._weights = wanted
            self._left = dict(wanted)

    def share(self, slots: int, rest: int, ready: Mapping[int, int]) -> dict[int, int]:
        """How many of the free slots each lane gets.

        slots: free for P0; rest: how many of them P1 to P3 may take together, because one is kept for a rush order.
        ready: how many tasks wait in each lane. Never more than wait; nothing is kept back beyond that.
        """
        left = {lane: ready.get(lane, 0) for lane in LANES if ready.get(lane, 0) > 0}
        given = dict.fromkeys(left, 0)
        while slots > 0:
            open_to = left if rest > 0 else {lane: number for lane, number in left.items() if lane == 0}
            if not open_to:
                break
            kept = rest <= 0 and len(left) > len(open_to)  # others wait too, but this slot is for P0 alone
            most = min(slots, rest) if rest > 0 else slots
            lane, number = self._pick_kept() if kept else self._pick(open_to, most)
            given[lane] += number
            slots -= number
            rest -= number if lane != 0 else 0
            left[lane] -= number
            if not left[lane]:
                del left[lane]
        if not left:  # nothing waits any more: what is spent in this round must not hold up the next rush order
            self._left = dict(self._weights)
        return {lane: number for lane, number in given.items() if number}

    def _pick(self, lanes: Mapping[int, int], most: int) -> tuple[int, int]:
        """The most urgent lane that has a turn left, with the turns that it takes now, at most so many; when none has,
        a new round begins. lanes: how many tasks wait in each."""
        with_turns = [lane for lane in sorted(lanes) if self._left[lane] > 0]
        if not with_turns:
            self._left = {lane: weight + min(0, self._left[lane]) for lane, weight in self._weights.items()}
            with_turns = [lane for lane in sorted(lanes) if self._left[lane] > 0]
        chosen = with_turns[0] if with_turns else min(lanes)
        number = max(1, min(most, lanes[chosen], self._left[chosen]))
        self._left[chosen] -= number
        return chosen, number

    def _pick_kept(self) -> tuple[int, int]:
        """P0, without a new round: short rush orders would else begin one after the other, and of the other lanes only
        the first would ever have a turn. P0 owes no more than one round, so that it waits for none but the next."""
        self._left[0] = max(self._left[0] - 1, -self._weights[0])
        return 0, 1
