"""Due times of a cron expression in a zone. Pure: no database, no clock.

The five fields are standard cron: minute, hour, day of the month, month, day of the week (0 and 7 are Sunday; names are
known); where both days are restricted, either counts. APScheduler finds the times on the wall clock, which knows no
daylight saving; then each is turned into a moment, once: a time that does not exist becomes the first moment after the
gap, and of one that exists twice the first counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

_FIELDS = re.compile(
    r"(?:[\d*,/-]+ ){3}[\da-z*,/-]+ [\da-z*,/-]+", re.ASCII
)  # names for months and days of the week only
_PART = re.compile(r"^(\*|[a-z]{3}|\d)(?:-([a-z]{3}|\d))?(?:/([1-7]))?$")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")  # as cron counts them; APScheduler counts from Monday
# The longest honest pause is that of 29 February, eight years around 1900 and 2100. What comes later never comes.
_HORIZON = timedelta(days=3660)
_SECOND = timedelta(seconds=1)


class BadCron(ValueError):
    """The expression or the zone cannot be used; the text says why and is fit for a person. field: cron or zone."""

    def __init__(self, message: str, field: str = "cron") -> None:
        super().__init__(message)
        self.field = field


class Cron:
    """A checked expression in its zone. Raises BadCron."""

    def __init__(self, text: str, zone: str) -> None:
        self._zone = _zone(zone)
        self._triggers = _triggers(text)

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Every due time after the moment, in UTC, without end unless there is none within ten years."""
        wall = moment.astimezone(self._zone).replace(tzinfo=None, fold=0)
        last = moment
        while (found := self._next_wall(wall)) is not None:
            due = _moment(found, self._zone)
            if due > last:  # not the wall times inside a gap, nor those of the second pass of a repeated hour
                yield due
                last = due
            wall = found + _SECOND

    def next(self, moment: datetime) -> datetime | None:
        """The first due time after the moment."""
        return next(self.after(moment), None)

    def latest(self, begin: datetime, end: datetime, most: int) -> list[datetime]:
        """The last due times from begin to end, both included, at most so many, oldest first.

        Looks back in windows that double, so that a year's outage of a schedule by the minute costs nothing.
        """
        window = timedelta(minutes=most)
        while True:
            start = max(begin, end - window)
            found = []
            for due in self.after(start - _SECOND):
                if due > end:
                    break
                found.append(due)
            if len(found) >= most or start == begin:
                return found[-most:]
            window *= 2

    def _next_wall(self, wall: datetime) -> datetime | None:
        """The next matching wall time from `wall` on, computed as if it were UTC, where every time exists once."""
        start = wall.replace(tzinfo=UTC)
        found = [trigger.get_next_fire_time(None, start) for trigger in self._triggers]
        within = [it.replace(tzinfo=None) for it in found if it is not None and it - start < _HORIZON]
        return min(within, default=None)


@lru_cache(maxsize=500)
def _triggers(text: str) -> tuple[CronTrigger, ...]:
    parts = text.lower().split()
    if not _FIELDS.fullmatch(" ".join(parts)):
        raise BadCron(
            f"“{text}” is not a cron expression; write five fields: minute, hour, day, month, day of the week, "
            "such as 0 9 * * mon-fri."
        )
    minute, hour, day, month, weekday = parts
    common = {"minute": minute, "hour": hour, "month": month, "timezone": UTC}
    by_weekday = _weekdays(weekday)
    either = not day.startswith("*") and not weekday.startswith("*")
    days = [{"day": day}, {"day_of_week": by_weekday}] if either else [{"day": day, "day_of_week": by_weekday}]
    try:
        triggers = tuple(CronTrigger(**common, **it) for it in days)
    except ValueError as error:
        raise BadCron(f"“{text}” is not a cron expression: {error}.") from error
    return triggers


def _weekdays(text: str) -> str:
    """The field as a list of names: cron's numbers start with Sunday, APScheduler's with Monday."""
    chosen: set[int] = set()
    for part in text.split(","):
        match = _PART.match(part)
        if match is None:
            raise BadCron(f"“{text}” is not a day of the week; write 0 to 7 or sun to sat, such as mon-fri.")
        first, last = (0, 6) if match[1] == "*" else (_day(match[1]), _day(match[2] or match[1]))
        if match[2] is None and match[3] and match[1] != "*":
            last = 6  # as everywhere in cron: 1/2 means from Monday on
        if last == 0 and match[2]:
            last = 7  # a range may end with Sunday
        if last < first:
            raise BadCron(f"“{part}” runs backwards; write the earlier day of the week first.")
        chosen |= {number % 7 for number in range(first, last + 1, int(match[3] or 1))}
    return "*" if len(chosen) == 7 else ",".join(_DAYS[number] for number in sorted(chosen))


def _day(text: str) -> int:
    if text in _DAYS:
        return _DAYS.index(text)
    if text.isdigit() and int(text) <= 7:
        return int(text)
    raise BadCron(f"“{text}” is not a day of the week; write 0 to 7 or sun to sat.")


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise BadCron(f"“{name}” is not a time zone name; write one such as Europe/Berlin.", "zone") from error


def _moment(wall: datetime, zone: ZoneInfo) -> datetime:
    """The moment of a wall time, in UTC: the first of two, or the end of the gap it falls into."""
    here = wall.replace(tzinfo=zone)
    moment = here.astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    # In a gap the offset before it (fold 0) leads to a moment after it, the one behind it (fold 1) to one before.
    before, behind = here.replace(fold=1).astimezone(UTC), moment
    offset = behind.astimezone(zone).utcoffset()
    while behind - before > _SECOND:
        middle = before + timedelta(seconds=(behind - before) // _SECOND // 2)
        if middle.astimezone(zone).utcoffset() == offset:
            behind = middle
        else:
            before = middle
    return behind
