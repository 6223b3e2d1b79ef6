"""A brake on guessing passwords: a few failed sign-ins per address, then a pause. In memory, per process."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from board.access.errors import AccessError

LIMIT = 10  # failed sign-ins; nobody who knows the password mistypes it that often
WINDOW = 15 * 60.0  # seconds
_MOST_ADDRESSES = 10_000  # about 5 MB; a stranger who tries more addresses pushes out the longest unused


class TooManyTries(AccessError):
    """The address has to wait. retry_after: seconds."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(
            "Too many failed sign-ins for this address; try again in {minutes} min.",
            code="too_many_sign_ins",
            minutes=max(1, math.ceil(retry_after / 60)),
        )
        self.retry_after = retry_after


class Throttle:
    """limit: tries of one address in WINDOW. clock: seconds that only grow; tests bring their own."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, limit: int = LIMIT) -> None:
        self._clock, self._limit = clock, limit
        self._tries: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, email: str) -> None:
        """Before the password is looked at. Counts the try, so that many at once pass no further than one by one.

        Raises TooManyTries once the address has used up its tries of the last 15 minutes.
        """
        key, moment = email.strip().lower(), self._clock()
        with self._lock:
            tries = self._tries.setdefault(key, deque())
            self._tries.move_to_end(key)
            while tries and tries[0] <= moment - WINDOW:
                tries.popleft()
            if len(tries) >= self._limit:
                raise TooManyTries(tries[0] + WINDOW - moment)
            tries.append(moment)
            if len(self._tries) > _MOST_ADDRESSES:
                self._tries.popitem(last=False)

    def succeeded(self, email: str) -> None:
        """The password was right: the address starts anew."""
        with self._lock:
            self._tries.pop(email.strip().lower(), None)
