"""How many new tasks a key may put in: counted in the database, and so over all processes that answer requests.

How many of them may wait is board.queue.intake_bound.
"""

from __future__ import annotations

import math
from functools import lru_cache
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from board.access.rights import Actor
from board.db.clock import read_now
from board.queue import intake_bound, usage
from board.queue.limits import Limit
from board.queue.usage import Now
from board.rates import burst, parse_rate, whole

_UTC = ZoneInfo("UTC")  # a rate knows no days


class OverRate(Exception):
    """The key has used up its rate. retry_after: whole seconds until as many may come."""

    def __init__(self, rate: str, number: int, retry_after: int) -> None:
        new = "a new task" if number == 1 else f"{number} new tasks"
        super().__init__(
            f"This key may put in {rate} new tasks, and {new} would be more. Nothing was stored. "
            f"Send it again in {retry_after} second{'s' if retry_after > 1 else ''}."
        )
        self.retry_after = retry_after


class NeverWithinRate(Exception):
    """One call brings more than the rate ever lets in at once."""

    def __init__(self, rate: str, number: int, most: int) -> None:
        super().__init__(
            f"This key may put in {rate} new tasks, and this call holds {number}: send at most {most} at a time. "
            "Nothing was stored."
        )


class IntakeRate:
    """usual: of keys without a rate of their own, such as "600/min"; "" for none."""

    def __init__(self, usual: str) -> None:
        self._usual = usual

    def charge(self, tx: Connection, actor: Actor, number: int) -> None:
        """Count new tasks that were just stored in this transaction. Raises OverRate, NeverWithinRate, and what
        board.queue.intake_bound raises: it is undone.

        After the storing, because duplicates are free: who sends all of it again after an error is not refused for
        what is there already. Keys without a rate and a bound cost nothing.
        """
        if actor.kind != "key" or not number:
            return
        intake_bound.check(tx, actor, number)
        rate = actor.rate or self._usual
        if not rate:
            return
        limit = _limit(actor.identity, rate)
        assert limit.rate is not None
        used = usage.lock(tx, [limit.row], wait=True)[limit.row]
        now = Now(read_now(tx), _UTC)
        level = used.level(limit, now)
        if number > limit.rate.capacity:
            raise NeverWithinRate(rate, number, int(limit.rate.capacity))
        if whole(level) < number:
            raise OverRate(rate, number, max(1, math.ceil(limit.rate.wait(level, number))))
        used.count(limit, now, number)
        usage.write(tx, {limit.row: used})


@lru_cache(maxsize=1000)
def _limit(identity: str, rate: str) -> Limit:
    scope = f"intake:{identity}"
    return Limit(scope, scope, rate=burst(parse_rate(rate)))
