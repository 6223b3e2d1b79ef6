"""Fires schedules: the leader puts the task of each due time in, once, whatever dies in between.

The task, the row of `firings` that is unique for schedule and due time, and the schedule's next time are written in one
transaction, guarded by the version and the time that were read: a schedule that was just changed does not fire at its
old time, and two leaders at once make one task.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, RowMapping, delete, select, update

from board.db.clock import now, read_now
from board.db.engine import AWAY, Database
from board.db.insert import insert_once
from board.tasks.bodies import TaskIn
from board.tasks.history import By
from board.tasks.intake import Duplicate, Intake, Problem
from board.upkeep.cron import Cron
from board.upkeep.models import firings, schedules
from board.upkeep.schedules import task_of

log = logging.getLogger(__name__)

# A due time is missed when nobody fired it for so long: well above the 13 s that a change of leaders takes.
PUNCTUAL = timedelta(seconds=60)
# Of missed due times with `catch_up: all` the last so many: a weekend of a schedule by the hour, not a flood.
MOST_CAUGHT_UP = 100
_Made: TypeAlias = tuple[TaskIn, dict[str, Any]]  # a body, and the row that intake has made of it
BATCH = 100  # schedules looked at in one go
# Made once: to make it costs more than its execution, which mostly finds nothing.
_DUE = (
    select(schedules)
    .where(schedules.c.paused.is_(False), schedules.c.next_at <= now())
    .order_by(schedules.c.next_at)
    .limit(BATCH)
)
KEPT_DAYS = 90  # firings are on record for so long; the IDs of their tasks go on preventing doubles


def any_due() -> ColumnElement[bool]:
    """Whether `Firing.fire` finds any."""
    return _DUE.with_only_columns(schedules.c.id).order_by(None).exists()


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to do about a schedule that is due. left_out: the last due time that is not fired, with the reason."""

    due: Sequence[datetime]
    next_at: datetime | None
    left_out: tuple[datetime, str] | None = None


@dataclass(frozen=True, slots=True)
class Firing:
    db: Database
    intake: Intake

    def fire(self) -> int:
        """Fire everything that is due; to be called every second, by the leader. Returns how many tasks came in."""
        with self.db.read() as connection:
            found = connection.execute(_DUE).mappings().all()
            moment = read_now(connection) if found else None
        return sum(self._try(row, moment) for row in found if moment is not None)

    def forget(self) -> None:
        """Remove what was fired long ago."""
        with self.db.write() as tx:
            tx.execute(delete(firings).where(firings.c.due_at < now(-86_400.0 * KEPT_DAYS)))

    def _try(self, row: RowMapping, moment: datetime) -> int:
        """One schedule that cannot fire must not hold up the others."""
        try:
            return self._fire(row, moment)
        except Exception as error:
            if isinstance(error, AWAY):
                raise
            log.error("schedule %s cannot fire: %s: %s", row["name"], type(error).__name__, error)
            return 0

    def _fire(self, row: RowMapping, moment: datetime) -> int:
        plan = _plan(row, moment)
        by = By("timer", f"schedule {row['name']}", "timer")
        prepared = [(due, *self._prepare(row, due, by)) for due in plan.due]
        with self.db.write() as tx:
            own = (
                update(schedules)
                .where(schedules.c.id == row["id"], schedules.c.version == row["version"])
                .where(schedules.c.next_at == row["next_at"], schedules.c.paused.is_(False))
                .values(next_at=plan.next_at)
            )
            if tx.execute(own).rowcount != 1:
                return 0  # changed, or fired by another process, since it was read
            if plan.left_out:
                due, note = plan.left_out
                self._enter(tx, row["name"], due, note)
            return sum(self._put_in(tx, row["name"], due, made, note, by) for due, made, note in prepared)

    def _put_in(self, tx: Connection, name: str, due: datetime, made: _Made | None, note: str | None, by: By) -> int:
        entry = self._enter(tx, name, due, note)
        if entry is None or made is None:
            return 0
        try:
            taken = self.intake.store(tx, [made], by)[0]
        except Duplicate as error:
            end, created = {"note": str(error)}, 0
        else:
            end, created = {"task_id": taken.task_id}, int(taken.created)
        tx.execute(update(firings).where(firings.c.id == entry["id"]).values(**end))
        return created

    @staticmethod
    def _enter(tx: Connection, name: str, due: datetime, note: str | None) -> RowMapping | None:
        """The record of a due time, or None when it is on record already."""
        values = {"schedule": name, "due_at": due, "fired_at": now(), "note": note}
        return insert_once(tx, firings, ("schedule", "due_at"), values)

    def _prepare(self, row: RowMapping, due: datetime, by: By) -> tuple[_Made | None, str | None]:
        """(body and row of the task, None), or (None, why it cannot be made): its type may have changed."""
        try:
            body = task_of(row["name"], row["body"], due)
            with self.db.read() as connection:
                return (body, self.intake.prepare(connection, body, by)), None
        except (Problem, ValidationError) as error:
            problem = str(error) if isinstance(error, Problem) else "The stored body does not fit any more."
            log.error("schedule %s cannot fire: %s", row["name"], problem)
            return None, problem


def _plan(row: RowMapping, moment: datetime) -> _Plan:
    cron = Cron(row["cron"], row["zone"])
    following = cron.next(moment)
    first: datetime = row["next_at"]
    due = cron.latest(first, moment, MOST_CAUGHT_UP + 1)
    if len(due) <= 1 and first > moment - PUNCTUAL:
        return _Plan(due, following)
    match row["catch_up"]:
        case "all":
            kept, why = due[-MOST_CAUGHT_UP:], f"Missed; only the last {MOST_CAUGHT_UP} due times were caught up."
        case "one":
            kept, why = due[-1:], "Missed, as perhaps others before; the next one was fired for all."
        case _:
            kept, why = [it for it in due if it > moment - PUNCTUAL], "Missed, as perhaps others before; skipped."
    if len(kept) == len(due):
        return _Plan(kept, following)
    left_out = due[len(due) - len(kept) - 1]
    log.warning("schedule %s: the due time %s was not fired: %s", row["name"], left_out.isoformat(), why)
    return _Plan(kept, following, (left_out, why))
