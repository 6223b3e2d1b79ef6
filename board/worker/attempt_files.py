"""The board's files as the handler of one attempt sees them: board.ports.JobFiles over the ledger of files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import RowMapping

from board.db.engine import Database
from board.files.ledger import Files, find
from board.files.local import PIECE
from board.ports import FileMissing, StoredFile


@dataclass(frozen=True, slots=True)
class AttemptFiles:
    """task: the internal id."""

    db: Database
    files: Files
    task: int

    async def about(self, file_id: str) -> StoredFile:
        row = await asyncio.to_thread(self._row, file_id)
        return StoredFile(file_id, row["name"], row["type"], row["bytes"], row["sha256"])

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

    async def keep(self, path: Path, name: str) -> StoredFile:
        kept = await asyncio.to_thread(self._keep, path, name)
        return await self.about(kept["file_id"])

    def _row(self, file_id: str) -> RowMapping:
        self.files.identity.check()
        with self.db.read() as connection:
            row = find(connection, file_id)
        if row is None:
            raise FileMissing(file_id)
        return row

    def _fetch(self, key: str, to: Path) -> None:
        with to.open("wb") as target:
            for piece in self.files.storage.read(key):
                target.write(piece)

    def _keep(self, path: Path, name: str) -> dict[str, Any]:
        with self.files.spool() as spool, path.open("rb") as source:
            while piece := source.read(PIECE):
                spool.write(piece)
            spool.finish()
            return self.files.keep([(name, spool)], f"task:{self.task}", self.task)[0]
