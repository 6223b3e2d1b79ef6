"""Bytes that come in, written to a temporary file of the data folder while they are counted and hashed."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from board.files import sniff
from board.files.local import plain


class TooLarge(Exception):
    """More came in than a file may have. limit: bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"A file may have at most {limit} bytes (BOARD_MAX_FILE). Send a smaller one.")
        self.limit = limit


class Spool:
    """One file on its way in: `write` it piece by piece, then hand it to the ledger of files. Gone when it is left."""

    def __init__(self, folder: Path, limit: int) -> None:
        """limit: the most bytes it may have. Raises StorageError when the folder cannot be written to."""
        self._limit = limit
        self._where = f"the folder {folder.absolute()}"
        self.path = folder / secrets.token_hex(16)
        self.bytes = 0
        self._head = b""
        self._hash = hashlib.sha256()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("xb")
        except OSError as error:
            raise plain(error, self._where) from error

    def write(self, piece: bytes) -> None:
        """Raises TooLarge, StorageError."""
        self.bytes += len(piece)
        if self.bytes > self._limit:
            raise TooLarge(self._limit)
        if len(self._head) < sniff.HEAD_BYTES:
            self._head += piece[: sniff.HEAD_BYTES - len(self._head)]
        self._hash.update(piece)
        try:
            self._file.write(piece)
        except OSError as error:
            raise plain(error, self._where) from error

    def finish(self) -> None:
        """All of it has come. Raises StorageError."""
        try:
            self._file.close()
        except OSError as error:
            raise plain(error, self._where) from error

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    @property
    def media_type(self) -> str:
        """Its media type, judged by content."""
        return sniff.media_type(self._head)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._file.close()
        self.path.unlink(missing_ok=True)
