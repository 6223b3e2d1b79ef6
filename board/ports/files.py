"""The board's files: as handlers see them, and as a storage keeps them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from board.ports.outcome import Json, JsonObject


class StorageError(Exception):
    """The storage did not do what was asked. The message is one plain sentence without secrets.

    transient: the same may succeed later (the disk is full, the network is away), so the work is tried again.
    """

    def __init__(self, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.transient = transient


class ContentGone(StorageError):
    """There is nothing (any more) under this key."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"A file is missing from {where}, though the board knows it. Put the storage back from your backup.",
            transient=False,
        )


class Storage(Protocol):
    """Keeps content under keys; what stands under a key never changes, and stands there whole or not at all.

    A key is at most 64 characters of a-z, 0-9 and "-". Every call may block, may come from any thread, and raises
    StorageError. Registered through the entry-point group `board.storage`: the entry's name is the scheme of
    BOARD_STORAGE_URL, and what it names is a StorageMaker.
    """

    where: str  # in words that a person understands, without secrets

    def put(self, key: str, source: Path) -> None:
        """Keep the content of a file; when this returns it is safe from a power cut. A key that is there is kept.

        The file itself may become what is stored: nobody writes into it any more; removing it does no harm.
        """

    def has(self, key: str) -> bool: ...

    def read(self, key: str, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The content from byte `start` on, `length` bytes of it or all, in pieces. Raises ContentGone."""

    def local(self, key: str) -> Path | None:
        """Where the content lies on this machine, to be read and never written; None where it must be fetched."""

    def remove(self, key: str) -> None:
        """Forget it; no error when it is not there."""

    def contents(self) -> Iterator[tuple[str, float]]:
        """Every key with the time of its writing, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that the board keeps. type: its media type, judged by content. sha256: of the content, hexadecimal."""

    file_id: str
    name: str
    type: str
    bytes: int
    sha256: str
    facts: JsonObject = field(default_factory=dict)  # what `keep` was told


class FileMissing(Exception):
    """The payload names a file that is not there any more."""

    def __init__(self, file_id: str) -> None:
        super().__init__(f"The file {file_id} is not there any more. Upload it again and correct the payload.")


class JobFiles(Protocol):
    """The board's files, for one attempt. Every call may raise StorageError, which need not be caught: it becomes a
    transient or a permanent failure by itself, as does FileMissing."""

    @property
    def slots(self) -> int:
        """How many files this process may work on at the same time."""

    @property
    def max_pixels(self) -> int:
        """How many pixels a picture may have."""

    @property
    def max_bytes(self) -> int:
        """How many bytes a file may have."""

    async def about(self, file_id: str) -> StoredFile:
        """Raises FileMissing."""

    def read(self, file_id: str) -> AsyncIterator[bytes]:
        """The content in pieces. Raises FileMissing."""

    def local(self, file_id: str) -> AbstractAsyncContextManager[Path]:
        """The content as a file of this machine, to be read and never written. Raises FileMissing."""

    async def keep(
        self, path: Path, name: str, *, recipe: str | None = None, facts: JsonObject | None = None
    ) -> StoredFile:
        """Keep what work has made, under a name for people; it lives as long as the task. Do not write into the file at
        `path` any more.

        recipe: at most 64 characters that stand for everything the content follows from (what came in, what was done):
        `made` finds it again. facts: what is known of it beside its bytes.
        """

    async def made(self, recipe: str) -> StoredFile | None:
        """What an earlier attempt, or another task, has kept under this recipe; from now on it is this task's too."""

    def named_in(self, value: Json) -> Sequence[str]:
        """The ids of all files that a payload names as `{"file": "file_…"}`, in its order, each once."""


StorageMaker: TypeAlias = Callable[[str], Storage]  # called with BOARD_STORAGE_URL; ValueError says what is wrong in it
