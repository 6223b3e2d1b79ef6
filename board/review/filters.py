"""Which reviews a list shows: what may be asked for, and the conditions that say so to the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Connection

from board.access import groups
from board.access.rights import Actor
from board.db.clock import now, read_now
from board.review.models import reviews
from board.review.policy import Reason
from board.tasks.models import tasks
from board.tasks.read import BadFilter

RISKS = ("high", "medium", "low")
# overdue: its time is over. today: it is over by the end of the day. none: it has none.
DUE = ("overdue", "today", "none")
Due = datetime | Literal["overdue", "none"] | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Each part narrows the list, an empty one does not. due: a time means due by then. assignees: names as they stand
    on tasks, of which each will do."""

    types: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    due: Due = None
    assignees: tuple[str, ...] = ()

    @property
    def asks_tasks(self) -> bool:
        """Whether the task of a review has to be looked at."""
        return bool(self.types or self.assignees)


@dataclass(frozen=True, slots=True)
class Asked:
    """The same as it stands in an address. due: one of DUE, or a time. mine: of the tasks that are assigned to whoever
    asks, or to a group of his."""

    type: tuple[str, ...] = ()
    risk: tuple[str, ...] = ()
    reason: tuple[str, ...] = ()
    due: str = ""
    mine: bool = False

    def check(self) -> None:
        """Raises BadFilter. A type may be unknown: it comes and goes."""
        for field, values, known in (("risk", self.risk, RISKS), ("reason", self.reason, [*Reason])):
            if unknown := [value for value in values if value not in known]:
                raise BadFilter(field, f"“{unknown[0][:40]}” is no {field}; there are: {', '.join(known)}.")
        _moment(self.due)

    def wanted(self, connection: Connection, actor: Actor, zone: str) -> Wanted:
        """zone: whose day ends with `today`. Raises BadFilter."""
        self.check()
        names = names_of(connection, actor) if self.mine else ()
        return Wanted(self.type, self.risk, self.reason, self._due(connection, zone), names)

    def _due(self, connection: Connection, zone: str) -> Due:
        match self.due:
            case "overdue" | "none":
                return self.due
            case "today":
                here = read_now(connection).astimezone(ZoneInfo(zone))
                tomorrow = (here + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
                return tomorrow.astimezone(UTC) - timedelta(microseconds=1)
        return _moment(self.due)


def names_of(connection: Connection, actor: Actor) -> tuple[str, ...]:
    """Under what names a task may be assigned to this actor: his own, and those of his groups."""
    return (actor.identity, actor.name, *sorted(groups.of(connection, actor.identity)))


def _moment(due: str) -> datetime | None:
    """The time that `due` names; None where it names none. Raises BadFilter."""
    if not due or due in DUE:
        return None
    try:
        moment = datetime.fromisoformat(due)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise BadFilter("due", f"due must be {', '.join(DUE)}, or a time such as 2026-12-01T12:00:00Z: due by then.")


def conditions(wanted: Wanted) -> list[ColumnElement[bool]]:
    """On `reviews` and, where `asks_tasks`, on `tasks` joined to it."""
    found: list[ColumnElement[bool]] = []
    for column, values in (
        (tasks.c.type, wanted.types),
        (tasks.c.assignee, wanted.assignees),
        (reviews.c.risk, wanted.risks),
        (reviews.c.reason, wanted.reasons),
    ):
        if values:
            found.append(column.in_(values))
    if wanted.due == "none":
        found.append(reviews.c.due_at.is_(None))
    elif wanted.due == "overdue":
        found += _due_by(now())
    elif isinstance(wanted.due, datetime):
        found += _due_by(wanted.due)
    return found


def _due_by(moment: Any) -> list[ColumnElement[bool]]:
    """By the first column of the order of the inbox, too: of a hundred thousand open reviews its index then ends with
    the last one that is due, where it would be read to its end for a page that does not get full."""
    return [reviews.c.due_at <= moment, reviews.c.due_order <= moment]
