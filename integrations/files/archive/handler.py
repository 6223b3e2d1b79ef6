"""All files of a task in one zip: `archive.package`."""

from __future__ import annotations

import hashlib
import json
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from board.ports import Cause, ErrorClass, Failure, Job, JsonObject, Outcome, StoredFile, Success
from integrations.files.archive.names import distinct
from integrations.files.archive.pack import pack
from integrations.files.bad_file import BadFile
from integrations.files.handler import MARGIN, NO_FILE, FileHandler, check_size, shown, wanted_files
from integrations.files.options import Option, Words
from integrations.files.pool import Pool, Turn

OPTIONS: tuple[Option, ...] = (Words("name", 200, default="files.zip"),)
MAX_FILES = 1_000  # each stands in the result, which people read
VERSION = 1  # part of every recipe, as in FileHandler


class Package(FileHandler):
    """Takes all files of the payload, in their order, unless `inputs` say which."""

    def __init__(self, pool: Pool) -> None:
        super().__init__("archive.package", pack.__module__, OPTIONS, pool)

    async def run(self, job: Job) -> Outcome:
        file_ids = wanted_files(job, every=True)
        if not file_ids:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, NO_FILE)
        if len(file_ids) > MAX_FILES:
            return _refused(f"The payload names {len(file_ids)} files; at most {MAX_FILES} go into one archive.")
        files = [await job.files.about(it) for it in file_ids]
        total = sum(it.bytes for it in files)
        if total > job.files.max_bytes:
            return _refused(
                f"The files have {total} bytes together; an archive may have {job.files.max_bytes} (BOARD_MAX_FILE)."
            )
        name = str(job.options.get("name", OPTIONS[0].default))
        try:
            made = await self._packed(job, files, name if name.lower().endswith(".zip") else f"{name}.zip")
        except BadFile as error:
            return _refused(str(error))
        return Success(result={"files": [made]})

    async def _packed(self, job: Job, files: list[StoredFile], name: str) -> JsonObject:
        names = distinct(it.name for it in files)
        recipe = _recipe(files, names, name)
        entries = [
            {"name": inside, "source": it.file_id, "bytes": it.bytes} for inside, it in zip(names, files, strict=True)
        ]
        if (found := await job.files.made(recipe)) is not None:
            return shown(found) | {"entries": entries}
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="board-"))
            sources: list[tuple[str, str, str]] = []
            for inside, it in zip(names, files, strict=True):
                path = await stack.enter_async_context(job.files.local(it.file_id))
                sources.append((str(path), inside, it.type))
            seconds = max(1.0, job.timeout - MARGIN)
            path = Path(await self._pool.run(Turn.of(job), seconds, pack, sources, str(Path(folder) / "made.zip")))
            check_size(path, job)
            return shown(await job.files.keep(path, name, recipe=recipe)) | {"entries": entries}


def _recipe(files: list[StoredFile], names: list[str], name: str) -> str:
    whole: list[Any] = [VERSION, "archive.package", name, [(it.sha256, it.type) for it in files], names]
    return hashlib.sha256(json.dumps(whole).encode()).hexdigest()


def _refused(message: str) -> Failure:
    return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, message)
