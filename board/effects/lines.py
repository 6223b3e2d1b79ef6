"""How many calls go to one receiver at a time: few to a stranger, more to one that answers, one if it hangs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from board.effects.deliver import Due

# Calls at the same time to one receiver: the first ones, and the most. Each quick answer earns it one more.
FIRST, MOST = 2, 16
QUICK, SLOW = 1.0, 5.0  # seconds of a call; a slow one takes all but one line away
# Rows taken in advance for a receiver that has earned all its lines, so that one transaction takes many.
AHEAD = 100


@dataclass(slots=True)
class Lines:
    """One receiver. calling: calls under way; ahead: rows taken and not yet sent, with the moment they were taken.

    more: the last take filled all the room, so there may be more.
    """

    limit: int = FIRST
    calling: int = 0
    ahead: deque[tuple[Due, float]] = field(default_factory=deque)
    more: bool = False

    @property
    def room(self) -> int:
        """How many rows may be taken for it."""
        return self.limit + (AHEAD if self.limit == MOST else 0) - self.calling - len(self.ahead)

    @property
    def free(self) -> bool:
        return self.calling < self.limit

    @property
    def hungry(self) -> bool:
        """Whether it is time to look for more."""
        return self.more and len(self.ahead) < self.limit and self.room > 0

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do for it. Not while there may be more: it would have to earn its lines anew."""
        return not self.calling and not self.ahead and not self.more

    def learn(self, seconds: float, *, answered: bool) -> None:
        """What a call has shown: how long it took, and whether there was any answer."""
        if seconds > SLOW:
            self.limit = 1
        elif answered and seconds < QUICK:
            self.limit = min(MOST, self.limit + 1)
