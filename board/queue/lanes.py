"""Whose turn it is: four lanes share the slots by smooth weighted round robin. Pure: no database, no clock.

Smooth: with weights 16 : 5 : 2 : 1 the picks of the small lanes are spread over a round instead of coming in a row, so
that even a short look at the order shows the shares. A lane that holds nothing takes no part and gives its share away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LANES = (0, 1, 2, 3)
# P1 to P3 share 5 : 2 : 1; P0 ahead of them is an express lane with twice the rest together.
DEFAULT_WEIGHTS = (16, 5, 2, 1)


class Shares:
    """The memory of one consumer: who has had how many turns. Not shared; each process keeps the shares by itself."""

    def __init__(self, weights: Sequence[int] = DEFAULT_WEIGHTS) -> None:
        self._credit = dict.fromkeys(LANES, 0)
        self.set_weights(weights)

    def set_weights(self, weights: Sequence[int]) -> None:
        """New weights from the next pick on. ValueError unless there is one of at least 1 for each lane."""
        if len(weights) != len(LANES) or any(weight < 1 for weight in weights):
            raise ValueError("give four weights of at least 1, for P0 to P3")
        self._weights = dict(zip(LANES, weights, strict=True))

    def share(self, slots: int, rest: int, ready: Mapping[int, int]) -> dict[int, int]:
        """How many of the free slots each lane gets.

        slots: free for P0; rest: how many of them P1 to P3 may take together, because one is kept for a rush order.
        ready: how many tasks wait in each lane. Never more than wait; nothing is kept back beyond that.
        """
        left = {lane: ready.get(lane, 0) for lane in LANES if ready.get(lane, 0) > 0}
        given = dict.fromkeys(left, 0)
        for _ in range(slots):
            if rest <= 0:
                left = {lane: number for lane, number in left.items() if lane == 0}
            if not left:
                break
            lane = self._pick(left)
            given[lane] += 1
            rest -= lane != 0
            left[lane] -= 1
            if not left[lane]:
                del left[lane]
        return {lane: number for lane, number in given.items() if number}

    def _pick(self, lanes: Mapping[int, int]) -> int:
        for lane in LANES:
            if lane not in lanes:
                self._credit[lane] = 0  # who was away has saved nothing up
        for lane in lanes:
            self._credit[lane] += self._weights[lane]
        chosen = max(lanes, key=lambda lane: (self._credit[lane], -lane))
        self._credit[chosen] -= sum(self._weights[lane] for lane in lanes)
        return chosen
