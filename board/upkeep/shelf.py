"""The files of the archive: one a day, `2026-11-30.jsonl.gz`, gzip, one task a line.

Nothing half written ever has a name that counts: what is new is written under a hidden name, brought to the disk, and
then renamed. Each batch is first a file of its own, `2026-11-30.part-….jsonl.gz`; `collect` adds these parts to the
file of their day. After a crash the next `collect` does it.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import IO

_LOCK = ".lock"
_DRAFT = ".draft-"
_PART = ".part-"
SUFFIX = ".jsonl.gz"


class Busy(Exception):
    """Another process is just writing here."""

    def __init__(self) -> None:
        super().__init__("Another process is just archiving into this folder; try again when it has finished.")


class Shelf:
    """The archive in a folder, which is made when it is needed. Only the board's own user can read it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process at a time writes here; a dead one holds nothing. Raises Busy."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Busy from None
            for left in self.folder.glob(f"{_DRAFT}*"):  # a crash left it; nobody else is writing
                left.unlink()
            yield
        finally:
            os.close(handle)

    def put(self, day: date, lines: Iterable[bytes]) -> Path:
        """A new part with these lines, on the disk when this returns."""
        # The time first: parts are collected in the order in which they were written.
        part = self.folder / f"{day}{_PART}{time.time_ns():020}-{secrets.token_hex(4)}{SUFFIX}"
        packed = gzip.compress(b"".join(lines))
        self._write(part, lambda file: file.write(packed))
        return part

    def put_again(self, part: Path, lines: list[bytes]) -> None:
        """Other lines in place of those of a part; without any, no part."""
        if lines:
            packed = gzip.compress(b"".join(lines))
            self._write(part, lambda file: file.write(packed))
        else:
            part.unlink()

    def collect(self) -> None:
        """Add all parts to the files of their days."""
        parts: dict[str, list[Path]] = {}
        for part in sorted(self.folder.glob(f"*{_PART}*{SUFFIX}")):
            parts.setdefault(part.name.partition(_PART)[0], []).append(part)
        for day, new in parts.items():
            whole = self.folder / f"{day}{SUFFIX}"
            sources = [whole, *new] if whole.exists() else new

            def join(file: IO[bytes], sources: list[Path] = sources) -> None:
                for source in sources:  # gzip files one after the other are a gzip file
                    with source.open("rb") as opened:
                        shutil.copyfileobj(opened, file)

            self._write(whole, join)
            for part in new:
                part.unlink()

    def _write(self, path: Path, fill: Callable[[IO[bytes]], object]) -> None:
        draft = self.folder / f"{_DRAFT}{secrets.token_hex(4)}"
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        self._sync_names()

    def _sync_names(self) -> None:
        """A new name is safe only when its folder is on the disk, too."""
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
