"""Old tasks leave the tables: written to the archive's files first, then removed; their IDs stay taken for ever.

What goes is chosen, written and removed in small batches. No lock is held while a file is written: the removal looks
again, and whatever has changed since it was read stays. A crash in between loses nothing; at worst a task stands twice
in the archive.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Table, delete, func, insert, select

from board.catalogue.store import Catalogue, list_types
from board.db.clock import read_now
from board.db.engine import Database
from board.db.types import dump_json
from board.effects import retire
from board.effects.models import announcements, operations, untold
from board.effects.view import operation_document
from board.review import read as reading
from board.review.models import reviews
from board.tasks import view
from board.tasks.models import attempts, retired_ids, task_data, task_events, tasks
from board.tasks.read import attempt_document
from board.tasks.states import TERMINAL, Status
from board.upkeep.shelf import Shelf

BATCH = 200  # tasks per transaction: removing them takes some 30 ms, for which others wait on SQLite
MOST_TEXT = 8_000_000  # characters of payloads and results in one batch; a single larger task goes alone
PAUSE = 0.1  # seconds after each batch: others get their turn
_NOT_KEPT = ("links", "waiting_for", "review")  # of the task object: they mean something on the board only

Documents = Callable[[Connection, list[RowMapping]], list[dict[str, Any]]]


@dataclass(slots=True)
class Tally:
    """archived: by (type, status). kept: past their retention and not archived, by the reason why."""

    archived: Counter[tuple[str, str]] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Archive:
    """documents: makes task objects of the contract. pause: seconds after each batch."""

    db: Database
    catalogue: Catalogue
    documents: Documents
    shelf: Shelf
    pause: float = PAUSE

    def run(self, go_on: Callable[[], bool] = lambda: True) -> Tally:
        """Archive what is due, as long as `go_on` says so. Raises Busy while another process archives here."""
        tally = Tally()
        with self.shelf.locked():
            self.shelf.collect()
            try:
                for kind, due in self._due(tally):
                    if not go_on():
                        break
                    tally.archived[kind] += self._archive(due)
                    time.sleep(self.pause)
            finally:
                self.shelf.collect()
        return tally

    def preview(self) -> Tally:
        """What `run` would do now."""
        tally = Tally()
        for kind, due in self._due(tally):
            tally.archived[kind] += len(due)
        return tally

    # -- choosing -----------------------------------------------------------------------------------------------------

    def _due(self, tally: Tally) -> Iterator[tuple[tuple[str, str], list[int]]]:
        """((type, status), internal ids of one batch). What must stay is counted in the tally."""
        with self.db.read() as connection:
            names = [row["name"] for row in list_types(connection)]
            moment = read_now(connection)
            kept_for = {name: self.catalogue.current(connection, name).spec.retention for name in names}
        for name, seconds in kept_for.items():
            if seconds is not None:
                for status in sorted(TERMINAL):
                    for due in self._ended(name, status, moment - timedelta(seconds=seconds), tally):
                        yield (name, status), due

    def _ended(self, name: str, status: Status, before: datetime, tally: Tally) -> Iterator[list[int]]:
        """Batches of tasks that ended before this moment.

        They are walked in the order of their ids, which is that of their making, through the index on type, status and
        id. The walk stops at the first that was made after that moment: with a million younger tasks behind it, it
        reads only what is old, and needs no index of its own.
        """
        last = 0
        while True:
            with self.db.read() as connection:
                rows = connection.execute(_window(name, status, last)).all()
                held = _held(connection, [row.id for row in rows if row.finished_at <= before])
            due: list[int] = []
            text = 0
            for row in rows:
                if row.finished_at > before:
                    continue
                unseen = status is Status.FAILED and row.acknowledged_at is None
                if reason := "not_acknowledged" if unseen else held.get(row.id):
                    tally.kept[reason] += 1
                    continue
                if due and text + row.text > MOST_TEXT:
                    yield due
                    due, text = [], 0
                due.append(row.id)
                text += row.text
            if due:
                yield due
            if len(rows) < BATCH or rows[-1].created_at > before:
                return
            last = rows[-1].id

    # -- writing, then removing -----------------------------------------------------------------------------------

    def _archive(self, due: Sequence[int]) -> int:
        with self.db.read() as connection:
            moment = read_now(connection)
            rows = list(connection.execute(select(tasks).where(tasks.c.id.in_(due))).mappings())
            lines = self._lines(connection, rows, moment)
        part = self.shelf.put(moment.date(), lines.values())
        gone = self._remove(rows, moment)
        if gone != lines.keys():  # moved, edited or called about meanwhile: those stay on the board
            self.shelf.put_again(part, [line for task, line in lines.items() if task in gone])
        return len(gone)

    def _lines(self, connection: Connection, rows: list[RowMapping], moment: datetime) -> dict[int, bytes]:
        """One line of JSON for each task, by internal id."""
        ids = [row["id"] for row in rows]
        parts = {
            "events": _by_task(connection, task_events, ids, view.event_document),
            "attempts": _by_task(connection, attempts, ids, attempt_document),
            "reviews": _by_task(connection, reviews, ids, reading.record),
            "operations": _by_task(connection, operations, ids, lambda row: operation_document(row, moment)),
        }
        lines: dict[int, bytes] = {}
        for row, document in zip(rows, self.documents(connection, rows), strict=True):
            task = {name: value for name, value in document.items() if name not in _NOT_KEPT}
            record: dict[str, Any] = {"archived_at": view.time(moment), "task": task}
            record |= {name: found.get(row["id"], []) for name, found in parts.items()}
            lines[row["id"]] = dump_json(record).encode() + b"\n"
        return lines

    def _remove(self, rows: Sequence[RowMapping], moment: datetime) -> set[int]:
        """Remove what is still as it was read. Returns the internal ids that are gone."""
        # Every change of a task writes an event, so the number of the last one tells whether there was any.
        read = {row["id"]: row["event_seq"] for row in rows}
        still = select(tasks.c.id, tasks.c.event_seq).where(tasks.c.id.in_(read))
        with self.db.write() as tx:
            if tx.dialect.name == "postgresql":
                still = still.with_for_update(skip_locked=True)
            same = {row.id for row in tx.execute(still) if row.event_seq == read[row.id]}
            gone = same - _held(tx, same).keys()
            if gone:
                retire.operations_of(tx, gone)
                tx.execute(delete(tasks).where(tasks.c.id.in_(gone)))
                ids = [
                    {"task_id": row["task_id"], "status": row["status"], "retired_at": moment}
                    for row in rows
                    if row["id"] in gone
                ]
                tx.execute(insert(retired_ids), ids)
        return gone


_TEXT = (
    select(func.length(task_data.c.payload) + func.coalesce(func.length(task_data.c.result), 0))
    .where(task_data.c.task == tasks.c.id)
    .scalar_subquery()
)


def _window(name: str, status: Status, last: int) -> Any:
    columns: tuple[ColumnElement[Any], ...] = (
        tasks.c.id,
        tasks.c.created_at,
        tasks.c.finished_at,
        tasks.c.acknowledged_at,
        _TEXT.label("text"),
    )
    query = select(*columns).where(tasks.c.type == name, tasks.c.status == status, tasks.c.id > last)
    return query.order_by(tasks.c.id).limit(BATCH)


def _held(connection: Connection, ids: Collection[int]) -> dict[int, str]:
    """Those of the tasks that must stay, by internal id, with the reason.

    Looks by task and not one condition in the query above: PostgreSQL would read all operations for it.
    """
    calls = select(operations.c.task).where(operations.c.task.in_(ids), retire.OPEN)
    notes = select(untold.c.task).where(untold.c.task.in_(ids))
    news = select(announcements.c.task).where(announcements.c.task.in_(ids))
    asked = select(reviews.c.task).where(reviews.c.task.in_(ids), reviews.c.status == "open")
    found = dict.fromkeys(connection.execute(asked).scalars(), "open_review")
    for open_ in (calls, notes, news):
        found |= dict.fromkeys(connection.execute(open_).scalars(), "open_operation")
    return found


def _by_task(
    connection: Connection, table: Table, ids: Sequence[int], shown: Callable[[RowMapping], dict[str, Any]]
) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    query = select(table).where(table.c.task.in_(ids)).order_by(table.c.task, table.c.id)
    for row in connection.execute(query).mappings():
        found.setdefault(row["task"], []).append(shown(row))
    return found
