"""Which storage a board's files are in: a mark in the storage, remembered in the database, compared before any use.

A process that sees another folder or bucket than its board's would store files where nobody finds them, and miss those
that are there.
"""

from __future__ import annotations

import secrets
import tempfile
import threading
from pathlib import Path

from sqlalchemy import select

from board.db.clock import now
from board.db.engine import Database
from board.db.insert import insert_once
from board.db.locks import Turn, wait_for_turn
from board.db.schema import Meta, table_of
from board.ports import ContentGone, Storage, StorageError

MARK = "storage-id"  # the key of the mark in the storage, and of its text in the database
_meta = table_of(Meta)


class WrongStorage(StorageError):
    """The storage is not that of this board."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"This board's files are not in {where}. Set BOARD_STORAGE_URL to the storage that the other processes of "
            "this board use, or mount it here.",
            transient=False,
        )


class Identity:
    def __init__(self, db: Database, storage: Storage) -> None:
        self._db, self._storage = db, storage
        self._known = False
        self._lock = threading.Lock()

    def check(self) -> None:
        """Once good, not looked at again. Raises WrongStorage, StorageError; the first process of all sets the mark."""
        with self._lock:
            if not self._known:
                self._look()
                self._known = True

    def problem(self) -> str | None:
        """What is wrong, freshly looked at, as a sentence."""
        try:
            self._look(may_set=False)
        except StorageError as error:
            return str(error)
        return None

    def _look(self, *, may_set: bool = True) -> None:
        with self._db.read() as connection:
            expected = connection.execute(select(_meta.c.value).where(_meta.c.key == MARK)).scalar_one_or_none()
        if expected is None:
            if not may_set:
                return
            expected = self._set()
        if self._read() != expected:
            raise WrongStorage(self._storage.where)

    def _read(self) -> str | None:
        if not self._storage.has(MARK):
            return None
        try:
            return b"".join(self._storage.read(MARK)).decode(errors="replace")
        except ContentGone:
            return None

    def _set(self) -> str:
        """The mark that counts: that which is there already (a database that was made anew), or a new one."""
        with self._db.write() as tx:
            wait_for_turn(tx, Turn.FILES)  # processes that start at once agree on one
            text = self._read() or self._make()
            insert_once(tx, _meta, "key", {"key": MARK, "value": text, "set_at": now()})
            return str(tx.execute(select(_meta.c.value).where(_meta.c.key == MARK)).scalar_one())

    def _make(self) -> str:
        text = secrets.token_hex(16)
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / MARK
            source.write_text(text, encoding="ascii")
            self._storage.put(MARK, source)
        return text
