"""The pages of a PDF for whoever looks at a task: drawn as `document.preview` draws them, by the same children.

PDFium parses in a child process with limits, and is built without a script engine; what leaves it is a JPEG.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from board.ports import Drawing, DrawnPage, NotShown
from integrations.files import child
from integrations.files.bad_file import BadFile, NeedsPassword
from integrations.files.handler import FileHandler
from integrations.files.pool import Turn

SIZE = 1400  # pixels of the longer side: a page of small print can be read


class DocumentPreview(FileHandler):
    """The handler, and the board's previewer of PDF documents."""

    previews = frozenset({"application/pdf"})

    async def draw(
        self, path: Path, folder: Path, *, pages: int, slots: int, max_pixels: int, seconds: float
    ) -> Drawing:
        options: dict[str, Any] = {"pages": pages, "size": SIZE, "format": "jpeg", "quality": 80}
        given = (self._makers, self.name, str(path), str(folder), max_pixels, options)
        try:
            made = await self._pool.run(Turn(slots, urgent=True), seconds, child.make, *given)
        except NeedsPassword as error:
            raise NotShown(str(error), "password") from error
        except BadFile as error:
            raise NotShown(str(error)) from error
        drawn = [DrawnPage(Path(page["path"]), page["width"], page["height"]) for page in made]
        return Drawing(drawn, made[0]["pages"])
