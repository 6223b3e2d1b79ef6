"""The board's files as the handler of one attempt sees them: board.ports.JobFiles over the ledger of files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import RowMapping

from board.db.engine import Database
from board.files.ledger import Files, find, find_made
from board.files.local import PIECE
from board.files.references import references
from board.ports import FileMissing, Json, JsonObject, StoredFile


@dataclass(frozen=True, slots=True)
class AttemptFiles:
    """task: the internal id."""

    db: Database
    files: Files
    task: int
    _known: dict[str, RowMapping] = field(default_factory=dict)  # what a file is never changes, and its task keeps it

    @property
    def slots(self) -> int:
        return self.files.slots

    @property
    def max_pixels(self) -> int:
        return self.files.max_pixels

    @property
    def max_bytes(self) -> int:
        return self.files.max_file

    async def about(self, file_id: str) -> StoredFile:
        return _stored(await asyncio.to_thread(self._row, file_id))

    async def read(self, file_id: str) -> AsyncIterator[bytes]:
        key = (await self.about(file_id)).sha256
        pieces = await asyncio.to_thread(self.files.storage.read, key)
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece

    @asynccontextmanager
    async def local(self, file_id: str) -> AsyncIterator[Path]:
        key = (await self.about(file_id)).sha256
        path = await asyncio.to_thread(self.files.storage.local, key)
        if path is not None:
            yield path
            return
        with self.files.spool() as spool:
            await asyncio.to_thread(self._fetch, key, spool.path)
            yield spool.path

    async def keep(
        self, path: Path, name: str, *, recipe: str | None = None, facts: JsonObject | None = None
    ) -> StoredFile:
        return _stored(await asyncio.to_thread(self._keep, path, name, recipe, facts))

    async def made(self, recipe: str) -> StoredFile | None:
        row = await asyncio.to_thread(self._made, recipe)
        return None if row is None else _stored(row)

    def named_in(self, value: Json) -> Sequence[str]:
        return list(dict.fromkeys(file_id for _, file_id in references(value)))

    def _row(self, file_id: str) -> RowMapping:
        if file_id not in self._known:
            self.files.identity.check()
            with self.db.read() as connection:
                row = find(connection, file_id)
            if row is None:
                raise FileMissing(file_id)
            self._known[file_id] = row
        return self._known[file_id]

    def _fetch(self, key: str, to: Path) -> None:
        with to.open("wb") as target:
            for piece in self.files.storage.read(key):
                target.write(piece)

    def _made(self, recipe: str) -> RowMapping | None:
        self.files.identity.check()
        with self.db.read() as connection:  # mostly it was not: a look costs no writer's turn, and no commit
            if find_made(connection, recipe) is None:
                return None
        with self.db.write() as tx:
            row = find_made(tx, recipe)
            if row is None or not self.files.storage.has(row["sha256"]):
                return None
            self.files.use(tx, self.task, [row["file_id"]])
            return row

    def _keep(self, path: Path, name: str, recipe: str | None, facts: JsonObject | None) -> dict[str, Any]:
        with self.files.spool() as spool, path.open("rb") as source:
            while piece := source.read(PIECE):
                spool.write(piece)
            spool.finish()
            return self.files.keep([(name, spool)], f"task:{self.task}", self.task, recipe, facts)[0]


def _stored(row: Mapping[Any, Any]) -> StoredFile:
    return StoredFile(row["file_id"], row["name"], row["type"], row["bytes"], row["sha256"], row["facts"] or {})
