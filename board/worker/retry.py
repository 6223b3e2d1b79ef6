"""How a failure is classed and when it is tried again. The type's own rules come first."""

from __future__ import annotations

import random
from dataclasses import replace

from board.catalogue.spec import RetrySpec
from board.ports import ErrorClass, Failure

RETRIED = (ErrorClass.TRANSIENT, ErrorClass.QUOTA, ErrorClass.UNKNOWN)
# A quota opens more slowly than a network heals: its pauses start four times as long.
QUOTA_FACTOR = 4
# An answer that asks for more than a day is taken as a day: a person looks at the board before then.
LONGEST_ASKED = 86_400.0


def classed(failure: Failure, spec: RetrySpec) -> Failure:
    """The failure with the class that the type's rules give it; the first rule that matches counts."""
    for number, rule in enumerate(spec.rules):
        when = rule.when
        if when.status is not None and when.status != failure.http_status:
            continue
        if when.code is not None and when.code != failure.code:
            continue
        if when.message is not None and when.message.lower() not in failure.message.lower():
            continue
        if when.rule is not None and when.rule != failure.rule:
            continue
        return replace(failure, error_class=ErrorClass(rule.class_), rule=f"retry.rules[{number}]")
    return failure


def delay(failure: Failure, spec: RetrySpec, retries_so_far: int) -> float:
    """Seconds until the next try: doubled each time from `base` up to `cap`, with jitter, never before Retry-After.

    The jitter (down to half) keeps tasks that failed together from coming back together.
    """
    factor = QUOTA_FACTOR if failure.error_class is ErrorClass.QUOTA else 1
    pause: float = min(spec.cap, spec.base * factor * 2.0 ** min(retries_so_far, 30))
    pause *= random.uniform(0.5, 1.0)  # noqa: S311 - no secret hangs on it
    return max(pause, min(failure.retry_after or 0.0, LONGEST_ASKED))
