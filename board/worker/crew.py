"""Who is at work now: which tasks they take between them, how fast, and what outside programs have claimed lately."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, select

from board.db.clock import now
from board.tasks.models import RUNNING, tasks
from board.worker.models import claims, workers
from board.worker.presence import SILENT_SECONDS

# An outside program that has claimed nothing of a type for so long, and runs nothing of it, is not there: programs ask
# every few minutes at the rarest.
CLAIMED_WITHIN = 900.0


@dataclass(frozen=True, slots=True)
class Crew:
    """The workers of the board that are alive: rows of `workers`."""

    alive: Sequence[RowMapping]

    def lack(self, type_name: str, lane: int, handler: str) -> tuple[str, str] | None:
        """As board.queue.waiting.Crew says."""
        if not self.alive:
            return "none", "No worker is running. Start one: `board worker`, or `board up` for everything in one."
        able = [row for row in self.alive if row["handlers"] is None or handler in row["handlers"]]
        if not able:
            return "handler", f"No worker that runs has the handler “{handler}” installed."
        able = [row for row in able if _open_to(row, "types", type_name)]
        if not able:
            return "type", "The workers that run are narrowed to other types (`board worker --types`)."
        if not any(_open_to(row, "lanes", lane) for row in able):
            return "lane", f"No worker that runs takes this type from lane P{lane} (`board worker --lanes`)."
        return None

    def pace(self, lane: int) -> float:
        return float(sum(row["pace"][lane] for row in self.alive if row["pace"]))


def _open_to(row: RowMapping, what: str, value: str | int) -> bool:
    only = (row["narrow"] or {}).get(what)
    return only is None or value in only


def crew(connection: Connection) -> Crew:
    columns = (workers.c.narrow, workers.c.handlers, workers.c.pace)
    alive = select(*columns).where(workers.c.stopped_at.is_(None), workers.c.seen_at >= now(-SILENT_SECONDS))
    return Crew(connection.execute(alive).mappings().all())


def at_work_outside(connection: Connection, types: Collection[str]) -> set[str]:
    """Those of the types of which outside programs run work now, or have claimed some lately."""
    running = select(tasks.c.type).where(RUNNING, tasks.c.type.in_(types)).distinct()
    lately = select(claims.c.type).where(claims.c.type.in_(types), claims.c.made_at >= now(-CLAIMED_WITHIN)).distinct()
    return {str(name) for query in (running, lately) for name in connection.execute(query).scalars()}
