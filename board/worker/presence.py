"""The table of workers: each process that takes work is in it, says that it is alive, and says goodbye.

Nothing that matters depends on it: tasks are taken back by their leases. It shows who works on what, and it tells when
a second machine is about to work on an SQLite file.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from board.db.clock import now, read_now
from board.db.engine import Database
from board.db.pages import Key, Page, after, page
from board.tasks.models import RUNNING, tasks
from board.upkeep import leader
from board.worker.models import workers
from board.worker.pace import Pace

BEAT_SECONDS = 10.0  # at most so long between two signs of life, however long the leases are
SILENT_SECONDS = 30.0  # three signs missed; under heavy load one or two may come late
KEPT_SECONDS = 86_400.0  # who was not seen for a day is of no interest any more
_KERNEL = Path("/proc/sys/kernel/random/boot_id")


class SecondHost(Exception):
    """Another machine works on this SQLite database; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a worker says about itself. types and lanes: what it is narrowed to, None for everything.

    handlers: the names of those that are installed in it.
    """

    name: str
    slots: int
    types: Sequence[str] | None = None
    lanes: Sequence[int] | None = None
    handlers: Collection[str] = ()


class Presence:
    """One worker's row."""

    def __init__(self, db: Database, entry: Entry) -> None:
        self._db, self._entry = db, entry
        self._pace = Pace()
        self._took = False  # since the last sign of life

    def enter(self) -> list[str]:
        """Enter the table. Returns the names of other workers on the same SQLite file; empty on PostgreSQL.

        Raises SecondHost when one of another machine is alive on it. Both in one transaction, so that of two machines
        which start at once one is refused.
        """
        with self._db.write() as tx:
            others = refuse_second_host(tx) if self._db.is_sqlite else []
            self._insert(tx)
        return others

    def took(self, lane: int) -> None:
        """A task of this lane was claimed; told with the next sign of life."""
        self._took = True
        self._pace.note(lane)

    def beat(self, tx: Connection, running: int) -> None:
        """A sign of life."""
        took, self._took = self._took, False
        values: dict[str, Any] = {"seen_at": now(), "running": running, "pace": self._pace.per_minute()}
        values |= {"claimed_at": now()} if took else {}
        if tx.execute(update(workers).where(workers.c.name == self._entry.name).values(**values)).rowcount == 0:
            self._insert(tx)  # away for so long that its row was removed

    def leave(self, tx: Connection) -> None:
        """A clean stop."""
        values = {"stopped_at": now(), "running": 0}
        tx.execute(update(workers).where(workers.c.name == self._entry.name).values(**values))

    def _insert(self, tx: Connection) -> None:
        entry = self._entry
        narrow = {"types": entry.types and list(entry.types), "lanes": entry.lanes and list(entry.lanes)}
        tx.execute(
            insert(workers).values(
                name=entry.name,
                host=this_host(),
                version=version("ai-task-board"),
                slots=entry.slots,
                narrow=narrow if any(narrow.values()) else None,
                handlers=sorted(entry.handlers),
                started_at=now(),
                seen_at=now(),
            )
        )


def refuse_second_host(connection: Connection) -> list[str]:
    """The workers that are alive on this SQLite database. Raises SecondHost when one is on another machine."""
    query = select(workers).where(workers.c.stopped_at.is_(None), workers.c.seen_at >= now(-SILENT_SECONDS))
    others = connection.execute(query).mappings().all()
    here = this_host()
    for row in others:
        if not same_machine(row["host"], here):
            raise SecondHost(
                f"The worker {row['name']} on another machine uses this SQLite database, which only one machine may "
                "do. Stop it, or use PostgreSQL: BOARD_DATABASE_URL=postgresql://user:password@host/board. If it is "
                f"dead, start again in {SILENT_SECONDS:.0f} s."
            )
    return [row["name"] for row in others]


def new_name() -> str:
    """A name for this worker that no other one has, with its host in front, for people."""
    return f"{socket.gethostname()[:150]}-{os.getpid()}-{secrets.token_hex(2)}"


def this_host() -> str:
    """`NAME@KERNEL`: the host's name, and what tells its running kernel apart: containers of one machine share it."""
    try:
        kernel = _KERNEL.read_text().strip()[:13]
    except OSError:  # not Linux
        kernel = ""
    return f"{socket.gethostname()[:150]}@{kernel}"


def same_machine(one: str, other: str) -> bool:
    """Same name (perhaps started anew), or another container of the same machine."""
    name, _, kernel = one.rpartition("@")
    other_name, _, other_kernel = other.rpartition("@")
    return name == other_name or (kernel == other_kernel != "")


def forget(db: Database) -> None:
    """Remove workers that were not seen for a day."""
    gone = workers.c.seen_at < now(-KEPT_SECONDS)
    with db.read() as connection:
        if connection.execute(select(workers.c.name).where(gone).limit(1)).first() is None:
            return
    with db.write() as tx:
        tx.execute(delete(workers).where(gone))


def listed(connection: Connection, cursor: str | None, limit: int) -> tuple[Page, list[dict[str, Any]]]:
    """(page, its workers as people see them), the youngest first."""
    keys = [Key(workers.c.started_at, "started_at", descending=True), Key(workers.c.name, "name")]
    found = page(connection.execute(after(select(workers), keys, cursor, limit)).mappings().all(), keys, limit)
    names = [row["name"] for row in found.rows]
    holds: dict[str, list[str]] = {name: [] for name in names}
    running = select(tasks.c.lease_owner, tasks.c.task_id).where(RUNNING, tasks.c.lease_owner.in_(names))
    for owner, task_id in connection.execute(running.order_by(tasks.c.task_id)):
        holds[owner].append(task_id)
    moment, leads = read_now(connection), leader.current(connection)
    shown = []
    for row in found.rows:
        narrow: Mapping[str, Any] = row["narrow"] or {}
        silent = (moment - row["seen_at"]).total_seconds() > SILENT_SECONDS
        shown.append(
            {
                "name": row["name"],
                "host": row["host"].rpartition("@")[0],
                "status": "stopped" if row["stopped_at"] else "silent" if silent else "alive",
                "version": row["version"],
                "slots": row["slots"],
                "running": len(holds[row["name"]]),
                "tasks": holds[row["name"]],
                "types": narrow.get("types"),
                "lanes": narrow.get("lanes") and [f"P{lane}" for lane in narrow["lanes"]],
                "per_minute": row["pace"] and {f"P{lane}": number for lane, number in enumerate(row["pace"])},
                "leader": row["name"] == leads,
                **{key: row[key] for key in ("started_at", "seen_at", "claimed_at", "stopped_at")},
            }
        )
    return found, shown
