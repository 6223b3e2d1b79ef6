"""`board backup` and `board restore`: the SQLite database in one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from board import backup as backups
from board import settings as all_settings
from board.cli.output import AsJson, print_json, remark

BackupFile = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")]


def backup(file: BackupFile, as_json: AsJson = False) -> None:
    """Write the SQLite database to a new file, also while the board runs."""
    settings = all_settings.load()
    backups.back_up(settings, file)
    if as_json:
        print_json({"file": str(file), "bytes": file.stat().st_size})
        return
    print(f"{file} holds the database ({file.stat().st_size} bytes).")
    remark(
        f"Not in it: encryption_key, webhook_secret and archive/ of {settings.data_dir}. Keep copies of those too, the "
        "keys apart from the database."
    )


def restore(file: BackupFile, as_json: AsJson = False) -> None:
    """Put a backup in the place of the SQLite database; the one that is there is kept beside it."""
    done = backups.restore(all_settings.load(), file)
    if as_json:
        kept = str(done.kept) if done.kept else None
        answer = {"database": str(done.database), "kept": kept, "schema": done.schema}
        print_json(answer | {"needs_migration": done.needs_migration})
        return
    print(f"{done.database} is what {file} holds.")
    if done.kept:
        remark(f"The database that was there is kept as {done.kept}.")
    if done.needs_migration:
        remark(f"Its schema is {done.schema}, older than this program's: run `board migrate` before the board starts.")
