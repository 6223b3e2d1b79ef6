"""How fast a worker goes: the tasks of each lane that it has begun per minute, over the last minutes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from board.queue.lanes import LANES

# Long enough not to jump with every burst, short enough to follow a worker that comes or goes.
WINDOW_SECONDS = 300.0
_STEP = 10.0  # counted in pieces of so many seconds, as often as a worker gives a sign of life
LEAST_SECONDS = 10.0  # a worker that has just begun is not taken to go on as in its first second


class Pace:
    """clock: seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begin = clock()
        self._pieces: deque[tuple[float, list[int]]] = deque()  # (its begin, number per lane)

    def note(self, lane: int) -> None:
        """A task of this lane was begun."""
        moment = self._clock()
        if not self._pieces or moment - self._pieces[-1][0] >= _STEP:
            self._pieces.append((moment, [0] * len(LANES)))
        self._pieces[-1][1][lane] += 1

    def per_minute(self) -> list[float]:
        """For P0 to P3."""
        moment = self._clock()
        while self._pieces and moment - self._pieces[0][0] > WINDOW_SECONDS:
            self._pieces.popleft()
        seconds = min(WINDOW_SECONDS, max(LEAST_SECONDS, moment - self._begin))
        counted = list(self._pieces)
        return [round(60.0 * sum(numbers[lane] for _, numbers in counted) / seconds, 2) for lane in LANES]
