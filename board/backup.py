"""A copy of an SQLite database in one file, also while the board runs, and the way back. PostgreSQL has its own tools.

A file gets its name only when it is whole and was looked at; nothing that is there is ever overwritten.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine

from board.access import secret_file
from board.access.crypto import Vault
from board.access.errors import WrongKey
from board.access.installation import check_key, stored_fingerprint
from board.db import migrate, place
from board.db.engine import SQLITE_BUSY_SECONDS, normal_url
from board.settings import Settings


class BackupRefused(Exception):
    """It cannot be done, and nothing was changed. The text says what to do."""


@dataclass(frozen=True, slots=True)
class Restored:
    """database: where it lies now. kept: the database that was there before. schema: of the backup."""

    database: Path
    kept: Path | None
    schema: str
    needs_migration: bool


def back_up(settings: Settings, file: Path) -> None:
    """Write the database as it is at this moment to a new file. Raises BackupRefused, OSError."""
    path = place.sqlite_path(settings.database_url)
    if path is None:
        raise BackupRefused(
            f"This board's database is PostgreSQL, whose own tool makes the backup: pg_dump --format=custom "
            f'--file={file} "$BOARD_DATABASE_URL"'
        )
    if not path.exists():
        raise BackupRefused(f"There is no database {path} to back up.")
    if file.exists():
        raise _exists(file)
    with _draft(file) as draft:
        draft.touch(0o600)  # people's data
        _copy(path, draft)
        _name(draft, file)


def restore(settings: Settings, file: Path) -> Restored:
    """Put a backup in the place of the database, which is kept beside it. Raises BackupRefused, WrongKey, BadPlace."""
    path = place.sqlite_path(settings.database_url)
    if path is None:
        raise BackupRefused(
            "This board's database is PostgreSQL, whose own tool restores: make an empty database, pg_restore "
            f"--no-owner --dbname postgresql://… {file}, and set BOARD_DATABASE_URL to it."
        )
    place.check(settings.database_url)
    if not file.is_file():
        raise BackupRefused(f"There is no file {file}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _draft(path) as draft:
        _copy(file, draft)
        schema = _look(draft, file, settings)
        kept = _out_of_the_way(path)
        if kept is not None:
            shutil.copymode(kept, draft)
        _name(draft, path)
    return Restored(path, kept, schema, schema != migrate.newest())


def _copy(source: Path, target: Path) -> None:
    """One moment of the source, its write-ahead log with it, as one plain file. Raises BackupRefused."""
    try:
        with (
            closing(sqlite3.connect(source, timeout=SQLITE_BUSY_SECONDS)) as opened,
            closing(sqlite3.connect(target)) as copy,
        ):
            opened.backup(copy)  # in one step: in steps, it would begin anew with each write of another process
            copy.execute("PRAGMA journal_mode=DELETE")
            found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise BackupRefused(f"{source} cannot be read as an SQLite database: {error}.") from error
    if found != "ok":
        raise BackupRefused(f"{source} is damaged: {found}.")
    with target.open("rb+") as file:
        os.fsync(file.fileno())


def _look(draft: Path, file: Path, settings: Settings) -> str:
    """The schema of a backup that this program, with its key, can work with."""
    engine = create_engine(normal_url(f"sqlite:///{draft}"))
    try:
        with engine.connect() as connection:
            schema = migrate.revision_of(connection)
            if schema is None:
                raise BackupRefused(f"{file} is no backup of a board.")
            if schema not in migrate.known():
                raise BackupRefused(
                    f"{file} has schema {schema}, which this program does not know. Install the program that made it, "
                    "or a newer one."
                )
            stored = stored_fingerprint(connection)
            if stored is not None:  # None: no process has ever started on it
                check_key(connection, _vault(settings, stored))
    finally:
        engine.dispose()
    return schema


def _vault(settings: Settings, stored: str) -> Vault:
    path = settings.data_dir / "encryption_key"
    key = settings.encryption_key.strip(" ,") or secret_file.read(path)
    if key is None:
        raise WrongKey(
            f"The backup belongs to an encryption key (fingerprint {stored}), but BOARD_ENCRYPTION_KEY is not set and "
            f"{path} does not exist. Set the one or put the other back first; without it stored secrets stay closed."
        )
    try:
        return Vault(key)
    except ValueError:
        raise WrongKey(f"{path} does not hold an encryption key; put it back from your backup.") from None


def _out_of_the_way(path: Path) -> Path | None:
    """Rename the database that is there, unless somebody uses it. Its new name; None where there is none."""
    if not path.exists():
        return None
    kept = path.with_name(f"{path.name}.before-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}")
    if kept.exists():
        raise BackupRefused(f"{kept} exists already; try again.")
    try:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as alone:
            # Nobody can leave the write-ahead log while another connection is open, not even one that does nothing;
            # and every process of the board keeps one open. After it all data is in the one file.
            if alone.execute("PRAGMA journal_mode=DELETE").fetchone()[0] != "delete":
                raise sqlite3.OperationalError("its write-ahead log is in use")
            alone.execute("BEGIN EXCLUSIVE")
            path.rename(kept)
            return kept
    except sqlite3.OperationalError as error:
        raise BackupRefused(
            f"The database {path} is in use ({error}). Stop every process of the board first; nothing was changed."
        ) from error
    except sqlite3.DatabaseError:  # damaged: perhaps the very reason for the restore
        for suffix in ("-wal", "-shm"):
            if (beside := path.with_name(path.name + suffix)).exists():
                beside.rename(kept.with_name(kept.name + suffix))
        path.rename(kept)
        return kept


@contextmanager
def _draft(beside: Path) -> Iterator[Path]:
    """A hidden name in the same folder; whatever is left under it goes away."""
    draft = beside.with_name(f".{beside.name}.{secrets.token_hex(4)}")
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _name(draft: Path, path: Path) -> None:
    """Give the finished draft its name, unless somebody else has taken it meanwhile."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP):
            raise
        if path.exists():  # a memory stick knows no second name for a file
            raise _exists(path) from None
        draft.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _exists(path: Path) -> BackupRefused:
    return BackupRefused(f"{path} exists already, and nothing is overwritten; name another file.")
