"""Looking at a document without opening it: its pages as pictures, drawn where nothing of it can do harm."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

# password: it is locked. broken: it is damaged, or needs more time or memory than a look may take.
NotShownWhy = Literal["password", "broken"]


class NotShown(Exception):
    """There are no pictures of this document, now or later."""

    def __init__(self, message: str, why: NotShownWhy = "broken") -> None:
        super().__init__(message)
        self.why: NotShownWhy = why


@dataclass(frozen=True, slots=True)
class DrawnPage:
    """One page as a picture that a browser shows. width, height: pixels."""

    path: Path
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """The first pages of a document. of: how many it has."""

    pages: Sequence[DrawnPage]
    of: int


@runtime_checkable
class Previewer(Protocol):
    """A handler that can draw documents for somebody who looks at a task, too."""

    previews: Collection[str]  # the media types that it draws

    async def draw(
        self, path: Path, folder: Path, *, pages: int, slots: int, max_pixels: int, seconds: float
    ) -> Drawing:
        """Draw the first `pages` pages of the document at `path` into files of `folder`, outside this process.

        slots, max_pixels: as in JobFiles. May be cancelled at any await. Raises NotShown, StorageError.
        """
