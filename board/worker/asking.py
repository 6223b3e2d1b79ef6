"""How long, and how often, the board asks what became of a call before a person is asked."""

from __future__ import annotations

import random
from dataclasses import dataclass

from board.catalogue.spec import RetrySpec
from board.ports import Failure
from board.worker.retry import LONGEST_ASKED

# A log that lags shows a call some time after it says that it shows all: the last look comes so much later, seconds.
AFTER_OPEN = 5.0
LEAST_PAUSE = 0.05  # the last look is not earlier than its time because clocks are read in milliseconds


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that was sent and may still be going on.

    asks: so often the target was asked about it. age: seconds since it was sent. limit: seconds after which a person is
    asked.
    """

    asks: int
    age: float
    limit: float


def usual_limit(timeout: float, max_retries: int) -> float:
    """As long as the type's retries would have taken: after that somebody who waits should hear of it. Seconds."""
    return timeout * (1 + max_retries)


def pause(failure: Failure, call: OpenCall, spec: RetrySpec) -> float | None:
    """Seconds until the target is asked again; None: it was asked long enough, now a person is.

    Doubled each time from the type's `retry.base` up to `retry.cap`, with jitter, never before Retry-After. The last
    question comes when the time is over, not a pause before.
    """
    left = max(call.limit, failure.open_for + AFTER_OPEN if failure.open_for else 0.0) - call.age
    if left <= LEAST_PAUSE:
        return None
    doubled = min(spec.cap, spec.base * 2.0 ** min(call.asks, 30)) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
    return max(min(doubled, left), LEAST_PAUSE, min(failure.retry_after or 0.0, LONGEST_ASKED))
