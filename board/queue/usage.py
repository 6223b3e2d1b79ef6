"""What a limit has used up: the tokens that are left of its rate, and the starts of its day."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, RowMapping, select, update
from sqlalchemy.dialects import postgresql, sqlite

from board.db.engine import utc
from board.queue.limits import Limit
from board.queue.models import limits
from board.rates import whole

NO_END = 1_000_000_000  # room where there is no limit
FAR_DAYS = 365  # further ahead nobody can tell


@dataclass(frozen=True, slots=True)
class Now:
    """A moment, and the board's zone, whose days are counted."""

    moment: datetime
    zone: ZoneInfo

    @property
    def day(self) -> str:
        return self.moment.astimezone(self.zone).date().isoformat()

    @property
    def midnight(self) -> datetime:
        """When the next day begins, in UTC."""
        return self.midnight_in(1)

    def midnight_in(self, days: int) -> datetime:
        """When the day so many days from today begins, in UTC."""
        day = self.moment.astimezone(self.zone).date() + timedelta(days=days)
        return utc(datetime.combine(day, time.min, self.zone))


@dataclass(slots=True)
class Usage:
    """A row of table `limits`."""

    tokens: float | None = None
    refilled_at: datetime | None = None
    day: str | None = None
    used: int = 0

    def level(self, limit: Limit, now: Now) -> float:
        """The tokens of the limit's rate."""
        assert limit.rate is not None
        since = (now.moment - self.refilled_at).total_seconds() if self.refilled_at else 0.0
        return limit.rate.level(self.tokens if self.refilled_at else None, since)

    def used_on(self, now: Now) -> int:
        return self.used if self.day == now.day else 0

    def room(self, limit: Limit, now: Now) -> int:
        """How many may start now, by rate and day."""
        by_rate = NO_END if limit.rate is None else whole(self.level(limit, now))
        by_day = NO_END if limit.per_day is None else max(0, limit.per_day - self.used_on(now))
        return min(by_rate, by_day)

    def opens_at(self, limit: Limit, now: Now) -> datetime | None:
        """When the next one may start, where rate or day keep it back now."""
        if limit.per_day is not None and self.used_on(now) >= limit.per_day:
            return now.midnight
        if limit.rate is None or whole(level := self.level(limit, now)) >= 1:
            return None
        return now.moment + timedelta(seconds=limit.rate.wait(level))

    def starts_at(self, limit: Limit, now: Now, before: int) -> datetime | None:
        """When one may start that has so many before it, by rate and day alone; None: it has neither, or that is more
        than FAR_DAYS away."""
        if limit.rate is None and limit.per_day is None:
            return None
        at = now.moment
        if limit.rate is not None:
            short = before + 1 - self.level(limit, now)
            at += timedelta(seconds=max(0.0, short / limit.rate.per_second))
        if limit.per_day is not None and (later := self.used_on(now) + before) >= limit.per_day:
            days = later // limit.per_day
            at = max(at, now.midnight_in(days)) if days <= FAR_DAYS else now.moment + timedelta(days=days)
        return at if at - now.moment <= timedelta(days=FAR_DAYS) else None

    def count(self, limit: Limit, now: Now, number: int = 1) -> None:
        """So many have started."""
        if limit.rate is not None:
            self.tokens, self.refilled_at = self.level(limit, now) - number, now.moment
        if limit.per_day is not None:
            self.used, self.day = self.used_on(now) + number, now.day


@dataclass(frozen=True, slots=True)
class Forecast:
    """When a limit lets in what it holds back. full: as many run as may at once, and nobody knows when one ends."""

    limit: Limit
    usage: Usage
    now: Now
    full: bool

    @property
    def opens_at(self) -> datetime | None:
        """When the next one may start, where rate or day keep it back now."""
        return self.usage.opens_at(self.limit, self.now)

    def starts_at(self, before: int) -> datetime | None:
        """When one starts that has so many before it, as far as it can be told."""
        return None if self.full else self.usage.starts_at(self.limit, self.now, before)


def read(connection: Connection, rows: Collection[str]) -> dict[str, Usage]:
    """What these have used; those that were never counted are new."""
    found = connection.execute(select(limits).where(limits.c.scope.in_(rows))).mappings()
    return {name: Usage() for name in rows} | {row["scope"]: _usage(row) for row in found}


def lock(tx: Connection, rows: Collection[str], *, wait: bool) -> dict[str, Usage]:
    """The same, locked until the transaction ends. Rows are made where they are missing.

    wait: for others that hold one of them, in one order for all, so that nobody waits in a circle. Else what others
    hold is left out. SQLite has one writer anyway.
    """
    names = sorted(rows)
    query = select(limits).where(limits.c.scope.in_(names)).order_by(limits.c.scope)
    if tx.dialect.name == "postgresql":
        query = query.with_for_update(skip_locked=not wait)
    found = {row["scope"]: _usage(row) for row in tx.execute(query).mappings()}
    if len(found) < len(names):
        dialect = sqlite if tx.dialect.name == "sqlite" else postgresql
        new = [{"scope": name, "used": 0} for name in names if name not in found]
        made = dialect.insert(limits).on_conflict_do_nothing(index_elements=["scope"]).returning(limits.c.scope)
        # Who waits has waited for whoever made the row in this very moment, and sees it now.
        if tx.execute(made, new).scalars().all() or wait:
            found = {row["scope"]: _usage(row) for row in tx.execute(query).mappings()}
    return found


def write(tx: Connection, changed: Mapping[str, Usage]) -> None:
    for name, usage in sorted(changed.items()):
        values = {"tokens": usage.tokens, "refilled_at": usage.refilled_at, "day": usage.day, "used": usage.used}
        tx.execute(update(limits).where(limits.c.scope == name).values(**values))


def _usage(row: RowMapping) -> Usage:
    return Usage(row["tokens"], row["refilled_at"], row["day"], row["used"])
