"""The storage that is a folder of this machine, or a network folder that all machines see under the same path.

A file is written beside its place, brought to the disk (fsync), and only then renamed into place, whose folder is
brought to the disk too. So after a power cut it is there whole or not at all, and what was answered for is there.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from board.ports import ContentGone, StorageError

PIECE = 256 * 1024  # bytes: large enough that a piece costs more to read than to hand on
_TEMPORARY = "tmp"
# What may be over by itself: a full disk or quota, a network folder that is away, too many open files.
_TRANSIENT = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EMFILE, errno.ENFILE}
)


class LocalStorage:
    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.where = f"the folder {self.root}"

    def put(self, key: str, source: Path) -> None:
        place = self._place(key)
        if place.exists():
            return
        with self._plain_errors():
            temporary = self.root / _TEMPORARY / secrets.token_hex(8)
            temporary.parent.mkdir(parents=True, exist_ok=True)
            try:
                _copy(source, temporary)
                place.parent.mkdir(parents=True, exist_ok=True)
                temporary.replace(place)
                for folder in (place.parent, place.parent.parent):
                    _to_disk(folder)
            finally:
                temporary.unlink(missing_ok=True)

    def has(self, key: str) -> bool:
        with self._plain_errors():
            return self._place(key).exists()

    def read(self, key: str, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        with self._plain_errors():
            try:
                file = self._place(key).open("rb")
            except FileNotFoundError:
                raise ContentGone(self.where) from None
        return self._pieces(file, start, length)

    def _pieces(self, file: object, start: int, length: int | None) -> Iterator[bytes]:
        left = length
        with file, self._plain_errors():  # type: ignore[attr-defined]
            file.seek(start)  # type: ignore[attr-defined]
            while left is None or left > 0:
                piece = file.read(PIECE if left is None else min(PIECE, left))  # type: ignore[attr-defined]
                if not piece:
                    return
                left = None if left is None else left - len(piece)
                yield piece

    def local(self, key: str) -> Path | None:
        place = self._place(key)
        if not place.exists():
            raise ContentGone(self.where)
        return place

    def remove(self, key: str) -> None:
        with self._plain_errors():
            self._place(key).unlink(missing_ok=True)

    def contents(self) -> Iterator[tuple[str, float]]:
        with self._plain_errors():
            for place in self.root.glob("??/??/*"):
                with suppress(FileNotFoundError):
                    yield place.name, place.stat().st_mtime

    def clean(self, older_than: float) -> int:
        """Remove what a process that was killed left half written before this time (seconds since 1970); how many."""
        return remove_old(self.root / _TEMPORARY, older_than)

    def _place(self, key: str) -> Path:
        return self.root / key[:2] / key[2:4] / key

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise plain(error, self.where) from error


def remove_old(folder: Path, older_than: float) -> int:
    """Remove the files of a folder that were last written before this time (seconds since 1970); how many."""
    removed = 0
    for left in folder.glob("*"):
        with suppress(OSError):
            if left.stat().st_mtime < older_than:
                left.unlink()
                removed += 1
    return removed


def plain(error: OSError, where: str) -> StorageError:
    """What the system said, as a sentence that says what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(f"There is no room left in {where}. Make room on its disk.", transient=True)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StorageError(
            f"The board may not use {where}. Give its user the right to read and write there.", transient=False
        )
    why = error.strerror or type(error).__name__
    return StorageError(f"{where[0].upper()}{where[1:]} cannot be used ({why}).", transient=error.errno in _TRANSIENT)


def _copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)  # the same disk: nothing is written twice; nobody writes into `source` any more
    except OSError:
        shutil.copyfile(source, target)
    _to_disk(target)


def _to_disk(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
