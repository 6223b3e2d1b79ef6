"""Documents as people see them on a page: their first pages as pictures, drawn once and kept under their content."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from board.db.engine import Database
from board.files.ledger import Files, find_made
from board.files.local import PIECE
from board.ports import Drawing, NotShown, NotShownWhy, Previewer

PAGES = 10  # enough to know what it is; who needs the rest saves the document
SECONDS = 20.0  # for whoever waits in front of the page
_VERSION = 1  # raised when the same document is drawn otherwise
_REQUESTER = "board:preview"
_REMEMBERED = 500  # documents of which there are no pictures: a hostile one costs a child its time once


class StillBusy(Exception):
    """The processes that draw are busy with other files: it is worth another try."""


@dataclass(frozen=True, slots=True)
class Page:
    """file_id: of the picture. width, height: pixels."""

    file_id: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Preview:
    """pages: the first ones. of: how many the document has."""

    pages: tuple[Page, ...]
    of: int


class Previews:
    """Pictures are files of the ledger that no task needs: they go after a day, and are drawn anew when asked for."""

    def __init__(self, db: Database, files: Files, handlers: Iterable[object]) -> None:
        self._db, self._files = db, files
        drawers = [it for it in handlers if isinstance(it, Previewer)]
        self._drawers = {kind: it for it in drawers for kind in it.previews}
        self._hopeless: OrderedDict[str, NotShownWhy] = OrderedDict()

    def can_draw(self, media_type: str) -> bool:
        return media_type in self._drawers

    async def of(self, file: Mapping[Any, Any]) -> Preview:
        """Of a file that `can_draw` is true of. Raises NotShown, StillBusy, StorageError."""
        key = str(file["sha256"])
        if (found := await asyncio.to_thread(self._found, key)) is not None:
            return found
        if key in self._hopeless:
            raise NotShown("It was tried before.", self._hopeless[key])
        try:
            async with asyncio.timeout(SECONDS + 5):  # those of drawing begin when a child has time
                return await self._drawn(file)
        except TimeoutError as error:
            raise StillBusy from error
        except NotShown as error:
            self._hopeless[key] = error.why
            while len(self._hopeless) > _REMEMBERED:
                self._hopeless.popitem(last=False)
            raise

    async def _drawn(self, file: Mapping[Any, Any]) -> Preview:
        slots, most = self._files.slots, self._files.max_pixels
        with tempfile.TemporaryDirectory(prefix="board-") as folder, self._local(str(file["sha256"])) as path:
            await asyncio.to_thread(self._fetch, str(file["sha256"]), path)
            drawing = await self._drawers[str(file["type"])].draw(
                path, Path(folder), pages=PAGES, slots=slots, max_pixels=most, seconds=SECONDS
            )
            return await asyncio.to_thread(self._keep, file, drawing)

    @contextmanager
    def _local(self, key: str) -> Iterator[Path]:
        """Where the content lies, or will once it is fetched."""
        path = self._files.storage.local(key)
        if path is not None:
            yield path
            return
        with self._files.spool() as spool:
            yield spool.path

    def _fetch(self, key: str, path: Path) -> None:
        if self._files.storage.local(key) is None:
            with path.open("wb") as target:
                for piece in self._files.storage.read(key):
                    target.write(piece)

    def _found(self, key: str) -> Preview | None:
        """All pictures of a document with this content, if it was drawn before."""
        self._files.identity.check()
        rows: list[Any] = []
        of = 1
        with self._db.read() as connection:
            while len(rows) < min(of, PAGES):
                row = find_made(connection, _recipe(key, len(rows)))
                if row is None:
                    return None
                of = row["facts"]["of"]
                rows.append(row)
        if not all(self._files.storage.has(row["sha256"]) for row in rows):
            return None
        return Preview(tuple(Page(it["file_id"], it["facts"]["width"], it["facts"]["height"]) for it in rows), of)

    def _keep(self, file: Mapping[Any, Any], drawing: Drawing) -> Preview:
        pages = []
        for number, page in enumerate(drawing.pages):
            with self._files.spool() as spool, page.path.open("rb") as source:
                while piece := source.read(PIECE):
                    spool.write(piece)
                spool.finish()
                facts = {"of": drawing.of, "width": page.width, "height": page.height}
                recipe = _recipe(str(file["sha256"]), number)
                name = f"page-{number + 1}.jpeg"
                [row] = self._files.keep([(name, spool)], _REQUESTER, recipe=recipe, facts=facts)
            pages.append(Page(row["file_id"], page.width, page.height))
        return Preview(tuple(pages), drawing.of)


def _recipe(key: str, number: int) -> str:
    return hashlib.sha256(f"preview {_VERSION} {key} {number}".encode()).hexdigest()
