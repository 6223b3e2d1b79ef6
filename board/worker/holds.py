"""What keeps new work back beside limits: connections that fail, and types whose tokens of the day are used up.

One process reads both once a second; they are few, and mostly none.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from board.catalogue.store import Catalogue, types_through
from board.db.clock import read_now
from board.db.engine import Database
from board.effects import breaker
from board.ports import Failure, Later, Outcome, Success
from board.queue import budget
from board.queue.usage import Now
from board.tasks.view import time
from board.worker.job import AttemptJob

AFTER_TRIAL = 5.0  # seconds; how long an attempt waits at least for how the trial of another one goes


@dataclass(slots=True)
class Holds:
    """types: that must not be begun now, each with why, in one sentence."""

    db: Database
    catalogue: Catalogue
    zone: str
    types: Mapping[str, str] = field(default_factory=dict)
    _failing: Mapping[str, Any] = field(default_factory=dict)
    _spent: Mapping[str, str] = field(default_factory=dict)
    _day_left: float = 0.0  # seconds

    def refresh(self, connection: Connection) -> None:
        moment = read_now(connection)
        self._failing = {row["connection"]: row for row in breaker.read(connection)}
        self._spent = self._used_up(connection, moment)
        self.types = why(connection, self._failing, moment) | dict(self._spent)

    async def keep_back(self, job: AttemptJob) -> Later | None:
        """Whether this attempt must wait before it sends anything."""
        if job.phase == "work" and job.type in self._spent:
            return Later(self._spent[job.type], self._day_left + random.uniform(1, 60))  # noqa: S311 - no secret
        name = job.connection.name if job.connection else None
        if name is None or name not in self._failing:
            return None
        left, job.trial = await asyncio.to_thread(self._may_try, name)
        if left <= 0:
            return None
        pause = max(left, AFTER_TRIAL) * random.uniform(1.0, 1.5)  # noqa: S311 - not all at once
        return Later(_shut(name, self._failing[name]), pause)

    async def heard(self, job: AttemptJob, outcome: Outcome) -> None:
        """What an attempt came to: for the breaker of its connection and the budget of its type."""
        name = job.connection.name if job.connection else None
        bad = isinstance(outcome, Failure) and breaker.counts(outcome)
        good = not bad and not isinstance(outcome, Later) and job.operation is not None and name in self._failing
        tokens = outcome.tokens if isinstance(outcome, Success | Failure) else None
        budgeted = bool(tokens) and job.phase == "work" and job.tokens_per_day is not None
        if (name is not None and (bad or good)) or budgeted:
            await asyncio.to_thread(self._note, job, name, outcome, bad, good, tokens if budgeted else None)

    def _may_try(self, name: str) -> tuple[float, bool]:
        with self.db.write() as tx:
            return breaker.may_try(tx, name)

    def _note(
        self, job: AttemptJob, name: str | None, outcome: Outcome, bad: bool, good: bool, tokens: int | None
    ) -> None:
        with self.db.write() as tx:
            if name is not None and bad and isinstance(outcome, Failure):
                breaker.failed(tx, name, outcome.message, trial=job.trial)
            elif name is not None and good:
                breaker.worked(tx, name)
            if tokens is not None:
                budget.spend(tx, job.type, tokens, Now(read_now(tx), ZoneInfo(self.zone)))
        with self.db.read() as connection:
            self.refresh(connection)

    def _used_up(self, connection: Connection, moment: datetime) -> dict[str, str]:
        now = Now(moment, ZoneInfo(self.zone))
        self._day_left = (now.midnight - moment).total_seconds()
        return spent(connection, self.catalogue, now)


def why(connection: Connection, failing: Mapping[str, Any], moment: datetime) -> dict[str, str]:
    """The types whose work goes through a connection that is shut, each with why."""
    shut = {name: row for name, row in failing.items() if breaker.is_shut(row, moment)}
    through = types_through(connection, shut.keys()) if shut else {}
    return {type_name: _shut(name, shut[name]) for type_name, name in through.items()}


def spent(connection: Connection, catalogue: Catalogue, now: Now) -> dict[str, str]:
    """The types that have used up their tokens of this day, each with why."""
    found = {}
    for name, used in budget.used(connection, now).items():
        most = catalogue.tokens_per_day(connection, name)
        if most is not None and used >= most:
            until = time(now.midnight)
            found[name] = f"The {most:,} tokens of the type {name} for today are used up; it goes on at {until}."
    return found


def kept_back(connection: Connection, catalogue: Catalogue, zone: str) -> dict[str, str]:
    """The same as `Holds.types`, for whoever asks once."""
    moment = read_now(connection)
    failing = {row["connection"]: row for row in breaker.read(connection)}
    return why(connection, failing, moment) | spent(connection, catalogue, Now(moment, ZoneInfo(zone)))


def _shut(name: str, row: Any) -> str:
    return (
        f"The connection “{name}” has failed {row['failures']} times in a row, so nothing is begun through it until "
        f"{time(row['until'])}; then one task tries it. Last trouble: {row['trouble']}"
    )
