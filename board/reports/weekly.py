"""The report of a week: worked out while the week runs, kept as it was once it is over.

Of several processes that find a week over, one writes it: the first. From then on everybody reads that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Connection, RowMapping, select

from board.access.rights import Act, Actor
from board.db.clock import read_now
from board.db.engine import Database
from board.db.insert import insert_once
from board.db.pages import DEFAULT_LIMIT, Key, after, page
from board.effects import subscriptions
from board.effects.subscriptions import Event
from board.reports.facts import compared, facts
from board.reports.models import reports
from board.reports.weeks import Week, Window
from board.tasks.models import task_events
from board.tasks.view import time

_KEYS = (Key(reports.c.week, "week", descending=True),)


class NoSuchReport(Exception):
    """Of this week there is nothing to report. The text says why."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of reports, newest first: their week, when they were written, and their headline."""

    rows: list[dict[str, Any]]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Reports:
    """zone: of the board, in whose days weeks begin. titles: whether reports may name tasks by their titles."""

    db: Database
    zone: str
    titles: bool = True

    def of(self, week: Week) -> dict[str, Any]:
        """The whole document, for readers of any right; see `for_eyes_of`. Raises NoSuchReport."""
        with self.db.read() as connection:
            if (row := _kept(connection, week)) is not None:
                return _document(row)
            now = read_now(connection)
            window = self._window(week, now)
            if window.begin > now:
                raise NoSuchReport(f"{week} has not begun yet.")
            if not self._over(week, now):
                return self._worked_out(connection, week, now) | {"frozen": False}
            if not _anything_before(connection, window.end):
                raise NoSuchReport(f"Nothing had happened here by the end of {week}.")
        return self.keep(week)

    def keep(self, week: Week) -> dict[str, Any]:
        """Write the report of a week that is over, unless it is there, and give what is there then.

        Who writes that of the last week tells the subscriptions of it.
        """
        with self.db.read() as connection:
            made = self._worked_out(connection, week, now := read_now(connection))
        with self.db.write() as tx:
            fresh = insert_once(tx, reports, "week", {"week": str(week), "as_of": now, "figures": made})
            if fresh is not None and week == self.last_week(tx):
                data = {"week": str(week), "headline": made["headline"]}
                subscriptions.note(tx, Event.REPORT_READY, str(week), data=data)
            row = _kept(tx, week)
            assert row is not None
            return _document(row)

    def keep_last(self) -> Week | None:
        """Write the report of the last week that is over, for the leader to do now and then; None: it was there, or
        nothing has happened yet."""
        with self.db.read() as connection:
            last = self.last_week(connection)
            end = self._window(last, read_now(connection)).end
            if _kept(connection, last) is not None or not _anything_before(connection, end):
                return None
        self.keep(last)
        return last

    def last_week(self, connection: Connection) -> Week:
        """The last one that is over."""
        return self.running_week(connection).previous

    def running_week(self, connection: Connection) -> Week:
        return Week.of(read_now(connection), ZoneInfo(self.zone))

    def listed(self, cursor: str | None = None, limit: int = DEFAULT_LIMIT) -> Listed:
        """The weeks that are over and were written, the newest first."""
        with self.db.read() as connection:
            rows = connection.execute(after(select(reports), _KEYS, cursor, limit)).mappings().all()
        found = page(rows, _KEYS, limit)
        shown = ("week", "zone", "from", "to", "headline")
        return Listed(
            [{name: row["figures"][name] for name in shown} | {"as_of": time(row["as_of"])} for row in found.rows],
            found.next_cursor,
        )

    def _window(self, week: Week, now: datetime) -> Window:
        return Window.of(week, self.zone, now)

    def _over(self, week: Week, now: datetime) -> bool:
        return week.midnights(ZoneInfo(self.zone))[-1] <= now

    def _worked_out(self, connection: Connection, week: Week, now: datetime) -> dict[str, Any]:
        window = self._window(week, now)
        these = facts(connection, window, titles=self.titles)
        bounds = {"from": time(window.days[0]), "to": time(window.days[-1])}
        head = {"week": str(week), "zone": self.zone} | bounds | {"as_of": time(now)}
        return head | {"change": compared(these, self._before(connection, week, now))} | these

    def _before(self, connection: Connection, week: Week, now: datetime) -> dict[str, Any] | None:
        """The figures of the week before, as they were kept, or else anew; None where nothing had happened by then."""
        if (row := _kept(connection, week.previous)) is not None:
            figures: dict[str, Any] = row["figures"]
            return figures
        window = self._window(week.previous, now)
        if not _anything_before(connection, window.end):
            return None
        return facts(connection, window, titles=self.titles)


def for_eyes_of(document: Mapping[str, Any], actor: Actor) -> dict[str, Any]:
    """The document with what people did for owners, and with their own part for everybody else."""
    if actor.may(Act.ADMIN):
        return dict(document)
    return dict(document) | {"people": [it for it in document["people"] if it["who"] == actor.identity]}


def _kept(connection: Connection, week: Week) -> RowMapping | None:
    return connection.execute(select(reports).where(reports.c.week == str(week))).mappings().first()


def _document(row: RowMapping) -> dict[str, Any]:
    return dict(row["figures"]) | {"as_of": time(row["as_of"]), "frozen": True}


def _anything_before(connection: Connection, end: datetime) -> bool:
    """By the index on the time of events."""
    before: ColumnElement[bool] = task_events.c.at < end
    return connection.execute(select(task_events.c.id).where(before).limit(1)).first() is not None
