"""Whose turn it is: four lanes share the slots by weighted round robin. Pure: no database, no clock.

A round gives each lane as many turns as its weight, the urgent lanes first. So a burst that fits into a round runs in
the order of its priorities, and under lasting load each lane gets its share of every round. A lane that holds nothing
takes no part and gives its share away; what it did not use is not saved up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LANES = (0, 1, 2, 3)
# P1 to P3 share 5 : 2 : 1; P0 ahead of them is an express lane with twice the rest together.
DEFAULT_WEIGHTS = (16, 5, 2, 1)


class Shares:
    """The memory of one consumer: who has turns left in this round. Not shared; each process keeps its own."""

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
        for _ in range(slots):
            open_to = left if rest > 0 else {lane: number for lane, number in left.items() if lane == 0}
            if not open_to:
                break
            lane = self._pick(open_to)
            given[lane] += 1
            rest -= lane != 0
            left[lane] -= 1
            if not left[lane]:
                del left[lane]
        if not left:  # nothing waits any more: what is spent in this round must not hold up the next rush order
            self._left = dict(self._weights)
        return {lane: number for lane, number in given.items() if number}

    def _pick(self, lanes: Mapping[int, int]) -> int:
        """The most urgent lane that has a turn left; when none has, a new round begins."""
        chosen = next((lane for lane in LANES if lane in lanes and self._left[lane] > 0), None)
        if chosen is None:
            self._left = dict(self._weights)
            chosen = min(lanes)
        self._left[chosen] -= 1
        return chosen
