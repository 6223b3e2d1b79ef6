"""Once a day: what has failed and was not put back, by type and cause; nothing where nothing new did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import ValidationError
from sqlalchemy import Connection, case, func, select

from board.access import groups
from board.catalogue.store import Catalogue, UnknownType
from board.db.clock import now, read_now
from board.db.engine import Database
from board.db.insert import insert_once
from board.db.many import insert_many
from board.notices.gather import GIVE_UP_AFTER
from board.notices.kinds import Kind
from board.notices.models import notices, routes
from board.notices.routing import hears, quiet_until
from board.tasks.models import FAILED, tasks
from board.upkeep.models import firings

NAME = "board:digest"  # in the record of what was fired; no schedule of a person has a colon in its name
SHOWN = 12  # causes named in one digest; the page shows all


@dataclass(frozen=True, slots=True)
class Digest:
    """at: of the day in `zone`; None: never."""

    db: Database
    catalogue: Catalogue
    at: time | None
    zone: str

    def look(self) -> bool:
        """Fire the digest of today when its time has come; whether this call did. Of all processes, one does."""
        with self.db.read() as connection:
            due = self._due(read_now(connection))
            if due is None or _fired(connection, due):
                return False
        with self.db.write() as tx:
            record = {"schedule": NAME, "due_at": due, "fired_at": now(), "note": None}
            if insert_once(tx, firings, ("schedule", "due_at"), record) is None:
                return False
            self._write(tx, due)
        return True

    def _due(self, moment: datetime) -> datetime | None:
        """The time of today's, once it is over. A board that was down then is late, not silent."""
        if self.at is None:
            return None
        today = moment.astimezone(ZoneInfo(self.zone)).date()
        due = datetime.combine(today, self.at, ZoneInfo(self.zone)).astimezone(UTC)
        return due if due <= moment else None

    def _write(self, tx: Connection, due: datetime) -> None:
        ways = [
            row for row in tx.execute(select(routes).order_by(routes.c.id)).mappings() if Kind.DIGEST in row["about"]
        ]
        found = _failed(tx) if ways else []
        members, moment = groups.list_groups(tx), read_now(tx)
        owners = {name: self._owner(tx, name) for name in {it["type"] for it in found}}
        made = []
        for route in ways:
            mine = [it for it in found if hears(route, Kind.DIGEST, owners[it["type"]], members)]
            if not (new := sum(it["new"] for it in mine)):
                continue
            causes = sorted(mine, key=lambda it: (-it["new"], -it["number"], it["type"]))
            at = quiet_until(route, moment)
            made.append(
                {
                    "route": route["id"],
                    "key": f"digest:{due.isoformat()}",
                    "kind": Kind.DIGEST,
                    "task_id": None,
                    "data": {"new": new, "all": sum(it["number"] for it in mine), "causes": causes[:SHOWN]},
                    "status": "waiting",
                    "tries": 0,
                    "due_at": at,
                    "give_up_at": at + GIVE_UP_AFTER,
                    "created_at": moment,
                }
            )
        insert_many(tx, notices, made)

    def _owner(self, tx: Connection, name: str) -> set[str]:
        try:
            owner = self.catalogue.current(tx, name).spec.owner
        except (UnknownType, ValidationError):  # removed, or written by hand
            return set()
        return {owner} if owner else set()


def _fired(connection: Connection, due: datetime) -> bool:
    query = select(firings.c.id).where(firings.c.schedule == NAME, firings.c.due_at == due)
    return connection.execute(query).first() is not None


def _failed(connection: Connection) -> list[dict[str, Any]]:
    """What stands as failed and was seen by nobody, by type and cause. new: of the last day."""
    day = func.sum(case((tasks.c.finished_at >= now(-timedelta(days=1).total_seconds()), 1), else_=0))
    query = select(tasks.c.type, tasks.c.error_cause, func.count(), day).where(FAILED)
    unseen = query.where(tasks.c.acknowledged_at.is_(None))
    rows = connection.execute(unseen.group_by(tasks.c.type, tasks.c.error_cause))
    return [{"type": row[0], "cause": row[1] or "unknown", "number": row[2], "new": int(row[3])} for row in rows]
