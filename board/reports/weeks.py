"""Weeks as ISO 8601 has them: from Monday, 00:00, to the next, in a zone. Pure: no database, no clock."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

_NAME = re.compile(r"(\d{4})-W(\d{2})", re.ASCII)
FIRST_YEAR, LAST_YEAR = 2000, 2999  # outside of it somebody has mistyped


class BadWeek(ValueError):
    """There is no such week. The text says what to write."""


@dataclass(frozen=True, slots=True, order=True)
class Week:
    """Its year is that of its Thursday: 2024-12-30 is in 2025-W01, and 2027-01-01 in 2026-W53."""

    year: int
    number: int

    @staticmethod
    def read(text: str) -> Week:
        """From `2026-W48`. Raises BadWeek."""
        found = _NAME.fullmatch(text.strip())
        if found is None or not FIRST_YEAR <= int(found[1]) <= LAST_YEAR:
            raise BadWeek(f"“{text.strip()[:40]}” is not a week; write year and number, such as 2026-W48.")
        week = Week(int(found[1]), int(found[2]))
        try:
            week.monday  # noqa: B018 - asked, because it knows
        except ValueError:
            last = date(week.year, 12, 28).isocalendar().week
            raise BadWeek(f"{week.year} has no week {found[2]}; its weeks are W01 to W{last}.") from None
        return week

    @staticmethod
    def of(moment: datetime, zone: ZoneInfo) -> Week:
        """The week that a moment lies in, by the calendar of the zone."""
        found = moment.astimezone(zone).date().isocalendar()
        return Week(found.year, found.week)

    def __str__(self) -> str:
        return f"{self.year}-W{self.number:02}"

    @property
    def monday(self) -> date:
        return date.fromisocalendar(self.year, self.number, 1)

    @property
    def next(self) -> Week:
        return self._days_on(7)

    @property
    def previous(self) -> Week:
        return self._days_on(-7)

    def midnights(self, zone: ZoneInfo) -> list[datetime]:
        """The eight moments, in UTC, that bound its days: the first belongs to it, the last does not.

        A day has 23 or 25 hours where the clock is changed; a midnight that is left out is the moment after the gap.
        """
        days = (self.monday + timedelta(days=number) for number in range(8))
        return [datetime.combine(day, time(), zone).astimezone(UTC) for day in days]

    def _days_on(self, days: int) -> Week:
        found = (self.monday + timedelta(days=days)).isocalendar()
        return Week(found.year, found.week)


@dataclass(frozen=True, slots=True)
class Window:
    """What a report looks at: events from `begin` on and before `end`. days: the moments that bound its days.

    end: of the week, or of what has passed of it.
    """

    week: Week
    zone: str
    days: tuple[datetime, ...]
    end: datetime

    @staticmethod
    def of(week: Week, zone: str, until: datetime) -> Window:
        """until: now, at which a running week ends."""
        days = week.midnights(ZoneInfo(zone))
        return Window(week, zone, tuple(days), max(days[0], min(days[-1], until)))

    @property
    def begin(self) -> datetime:
        return self.days[0]

    def since(self, weeks: int) -> Window:
        """The same end, and a begin so many weeks before it, this one included."""
        first = self.week
        for _ in range(weeks - 1):
            first = first.previous
        return replace(self, days=(first.midnights(ZoneInfo(self.zone))[0], *self.days[1:]))
