"""When a call that may be repeated is tried again: the pauses of callbacks and of resume calls."""

from __future__ import annotations

import random

from board.effects.n8n_answers import TOO_EARLY
from board.ports import ErrorClass, Failure, Outcome, Success

LONGEST_ASKED = 86_400.0  # a receiver that asks for more than a day is asked again after a day
BASE_SECONDS, CAP_SECONDS = 5.0, 3600.0  # the first pause, and the longest; doubled in between
EARLY_SECONDS = 1.0  # the first pause for an n8n that has not come to its Wait node: that is a matter of moments


def pause(outcome: Outcome, tries: int, left: float) -> float | None:
    """Seconds until the next try; None when there is none: confirmed, rejected, or the time is over.

    left: seconds until it is given up; the last try comes at their end. What may or may not have arrived goes
    again under the same id: at least once.
    """
    if isinstance(outcome, Success) or (isinstance(outcome, Failure) and outcome.error_class is ErrorClass.PERMANENT):
        return None
    asked = outcome.retry_after if isinstance(outcome, Failure) else None
    early = isinstance(outcome, Failure) and outcome.code == TOO_EARLY
    doubled = (EARLY_SECONDS if early else BASE_SECONDS) * 2 ** min(tries - 1, 20)
    seconds = min(CAP_SECONDS, doubled) * random.uniform(0.8, 1.2)  # noqa: S311 - no secret
    seconds = max(min(seconds, left), min(asked or 0.0, LONGEST_ASKED))
    return seconds if 0 < seconds <= left else None
