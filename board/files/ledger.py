"""The one writer of the file ledger: keeps what came in, says what there is, and which task needs it."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, delete, exists, insert, select

from board.access.rights import Act, Actor
from board.db.clock import now
from board.db.engine import Database
from board.db.insert import insert_once
from board.db.locks import Turn, wait_for_turn
from board.files.identity import Identity
from board.files.local import LocalStorage, remove_old
from board.files.models import file_uses, files
from board.files.names import shown_name
from board.files.references import new_file_id
from board.files.spool import Spool
from board.ports import Storage
from board.tasks.models import tasks

# A file that no task needs goes after a day: by then whoever uploads first and submits later has long done so.
UNUSED_SECONDS = 86_400.0
BATCH = 200  # files that are removed in one transaction: a few milliseconds


class NoSuchFile(Exception):
    """No file of this id, or none that the actor may see: the two are not told apart."""

    def __init__(self, file_id: str) -> None:
        super().__init__(f"There is no file “{file_id[:60]}”. Upload it again with POST /files.")


class Files:
    """storage: where the bytes are. folder: of this machine, for what is on its way in. max_file: bytes.

    max_pixels, slots: what handlers are told, see board.ports.JobFiles.
    """

    def __init__(
        self,
        db: Database,
        storage: Storage,
        folder: Path,
        max_file: int,
        *,
        max_pixels: int = 100_000_000,
        slots: int = 1,
    ) -> None:
        self.storage = storage
        self.max_file, self.max_pixels, self.slots = max_file, max_pixels, slots
        self.identity = Identity(db, storage)
        self.folder = folder
        self._db = db

    def spool(self) -> Spool:
        """Where one file is written while it comes in. Raises StorageError."""
        return Spool(self.folder, self.max_file)

    def keep(
        self,
        came: Sequence[tuple[str | None, Spool]],
        requester: str,
        task: int | None = None,
        recipe: str | None = None,
        facts: dict[str, Any] | None = None,
    ) -> list[dict[str, Any]]:
        """Files that have come whole, with the names that were given: all are kept, or none; their rows.

        task: the internal id of the task that needs them from now on. recipe, facts: as board.ports.JobFiles.keep has
        them. Raises StorageError.
        """
        self.identity.check()
        for _, it in came:
            self.storage.put(it.sha256, it.path)
        while True:
            with self._db.write() as tx:
                wait_for_turn(tx, Turn.FILES)  # the sweep removes content in its own turn, and sees these rows or none
                gone = [it for _, it in came if not self.storage.has(it.sha256)]
                if not gone:
                    return [self._enter(tx, name, it, requester, task, recipe, facts) for name, it in came]
            for it in gone:  # swept since it was put there: nobody needed that content for a day
                self.storage.put(it.sha256, it.path)

    def unknown(self, connection: Connection, file_ids: Collection[str]) -> set[str]:
        """Those of the ids that name no file."""
        known = connection.execute(select(files.c.file_id).where(files.c.file_id.in_(file_ids))).scalars()
        return set(file_ids) - set(known)

    def use(self, tx: Connection, task: int, file_ids: Collection[str]) -> None:
        """The task (internal id) needs these files from now on. Ids that are unknown are passed over."""
        query = select(files.c.id).where(files.c.file_id.in_(set(file_ids))).with_for_update(key_share=True)
        for file in tx.execute(query).scalars():
            insert_once(tx, file_uses, ("file", "task"), {"file": file, "task": task})

    def sweep(self) -> int:
        """Remove files that no task needs, and content that no file has; how many files."""
        removed = 0
        while True:
            with self._db.write() as tx:
                gone = tx.execute(_UNUSED.limit(BATCH)).all()
                tx.execute(delete(files).where(files.c.id.in_([row.id for row in gone])))
            with self._db.write() as tx:  # only what is committed is forgotten
                wait_for_turn(tx, Turn.FILES)
                self._forget(tx, {row.sha256 for row in gone})
            removed += len(gone)
            if len(gone) < BATCH:
                return removed

    def sweep_content(self) -> int:
        """Remove content without a file, such as that of an upload whose process was killed; how many keys."""
        border = time.time() - UNUSED_SECONDS
        old = [key for key, written in self.storage.contents() if written < border and len(key) == 64]
        removed = 0
        for start in range(0, len(old), BATCH):
            with self._db.write() as tx:
                wait_for_turn(tx, Turn.FILES)
                removed += self._forget(tx, set(old[start : start + BATCH]))
        return removed

    def clean(self) -> int:
        """Remove what processes that were killed left half written on this machine; how many temporary files."""
        border = time.time() - UNUSED_SECONDS
        left = self.storage.clean(border) if isinstance(self.storage, LocalStorage) else 0
        return left + remove_old(self.folder, border)

    def _forget(self, tx: Connection, keys: Collection[str]) -> int:
        """Remove content that no file has; within the turn, so that no new file can rely on it meanwhile."""
        needed = set(tx.execute(select(files.c.sha256).where(files.c.sha256.in_(keys))).scalars())
        for key in set(keys) - needed:
            self.storage.remove(key)
        return len(set(keys) - needed)

    def _enter(
        self,
        tx: Connection,
        name: str | None,
        came: Spool,
        requester: str,
        task: int | None,
        recipe: str | None,
        facts: dict[str, Any] | None,
    ) -> dict[str, Any]:
        row = {
            "file_id": new_file_id(),
            "sha256": came.sha256,
            "bytes": came.bytes,
            "name": shown_name(name),
            "type": came.media_type,
            "requester": requester,
            "created_at": now(),
            "recipe": recipe,
            "facts": facts,
        }
        made = tx.execute(insert(files).values(row).returning(files.c.id)).scalar_one()
        if task is not None:
            tx.execute(insert(file_uses).values(file=made, task=task))
        return row


def document(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A file on the wire."""
    return {"file_id": row["file_id"], "name": row["name"], "bytes": row["bytes"], "type": row["type"]}


def find(connection: Connection, file_id: str) -> RowMapping | None:
    return connection.execute(select(files).where(files.c.file_id == file_id)).mappings().one_or_none()


def find_made(connection: Connection, recipe: str) -> RowMapping | None:
    """The latest file that work has kept under this recipe."""
    query = select(files).where(files.c.recipe == recipe).order_by(files.c.id.desc()).limit(1)
    return connection.execute(query).mappings().one_or_none()


def visible(connection: Connection, actor: Actor, file_id: str) -> RowMapping:
    """The row of a file that the actor may read: with the right to read or to work all of them, else those that he
    uploaded or that belong to his tasks. Raises NoSuchFile."""
    row = find(connection, file_id)
    if row is None or not (
        actor.may(Act.READ, own=row["requester"] == actor.identity)
        or actor.may(Act.WORK)
        or (actor.may(Act.READ_OWN) and _belongs_to(connection, row["id"], actor.identity))
    ):
        raise NoSuchFile(file_id)
    return row


def _belongs_to(connection: Connection, file: int, identity: str) -> bool:
    theirs = and_(file_uses.c.file == file, file_uses.c.task == tasks.c.id, tasks.c.requester == identity)
    return connection.execute(select(exists().where(theirs))).scalar_one()


# By age through its index: files that are needed stand for as long as their tasks, so that the oldest are mostly those.
_UNUSED = (
    select(files.c.id, files.c.sha256)
    .where(
        files.c.created_at < now(-UNUSED_SECONDS),
        ~exists().where(file_uses.c.file == files.c.id),
    )
    .order_by(files.c.created_at)
    .with_for_update(skip_locked=True)  # a task is about to need it
)

__all__ = ["Files", "NoSuchFile", "document", "find", "visible"]
