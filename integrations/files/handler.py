"""Work on the files of one task: each in a child process, each for itself, and told together."""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from board.ports import (
    Cause,
    ErrorClass,
    Failure,
    Job,
    JsonObject,
    NotStarted,
    Outcome,
    SentOperation,
    StoredFile,
    Success,
)
from integrations.files import child
from integrations.files.bad_file import BadFile
from integrations.files.options import Option, problems, values
from integrations.files.pool import Pool, Turn

# Part of every recipe: raised when the same options give other content, so that old results are not taken for new.
VERSION = 1
MARGIN = 2.0  # seconds of the task's time-out that are left for keeping what was made
NO_FILE = 'The payload names no file. Upload one with POST /files and name it as {"file": "file_…"}.'
_PARTS = "parts"  # the fact that says how many files were made of one, where it is more than one


class FileHandler:
    """name: as `handler.use` has it. makers: the module whose MAKERS hold, by that name, the function that a child runs
    for one file, with its path, a folder, the most pixels and the options. It gives back what it has made, or a list of
    it."""

    connection_kind: str | None = None
    side_effects = False
    slots = "files"
    phases = ("work", "act")

    def __init__(self, name: str, makers: str, options: Sequence[Option], pool: Pool) -> None:
        self.name = name
        self.options = tuple(it.name for it in options)
        self._makers, self._options, self._pool = makers, options, pool

    def check(self, handler: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        return problems(self._options, handler)

    async def run(self, job: Job) -> Outcome:
        file_ids = wanted_files(job)
        if not file_ids:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, NO_FILE)
        options = values(self._options, job.options)
        end = asyncio.get_running_loop().time() + max(1.0, job.timeout - MARGIN)
        made: list[JsonObject] = []
        bad: list[tuple[str, str]] = []
        for number, file_id in enumerate(file_ids):
            about = await job.files.about(file_id)
            try:
                made += await self._one(job, about, options, end - asyncio.get_running_loop().time())
            except BadFile as error:
                bad.append((about.name, str(error)))
            await job.progress(100 * (number + 1) / len(file_ids))
        return _told(made, bad)

    def close(self) -> None:
        """The worker stops: end the children."""
        self._pool.close()

    async def reconcile(self, job: Job, operation: SentOperation) -> Outcome | NotStarted:
        return NotStarted()  # nothing ever leaves the house

    async def _one(self, job: Job, about: StoredFile, options: dict[str, Any], seconds: float) -> list[JsonObject]:
        """What is made of one file; found, where it was made before. Raises BadFile."""
        if (found := await self._found(job, about, options)) is not None:
            return found
        with tempfile.TemporaryDirectory(prefix="board-") as folder:
            async with job.files.local(about.file_id) as path:
                made = await self._pool.run(
                    Turn.of(job),
                    max(1.0, seconds),
                    child.make,
                    self._makers,
                    self.name,
                    str(path),
                    folder,
                    job.files.max_pixels,
                    options,
                )
            parts = made if isinstance(made, list) else [made]
            kept = []
            for number, part in enumerate(parts):
                check_size(Path(part["path"]), job)
                facts = {name: value for name, value in part.items() if name not in ("path", "suffix", "ending")}
                facts |= {_PARTS: len(parts)} if len(parts) > 1 else {}
                name = _new_name(about.name, part["suffix"], part["ending"])
                recipe = self._recipe(about, options, number)
                kept.append(shown(await job.files.keep(Path(part["path"]), name, recipe=recipe, facts=facts), about))
            return kept

    async def _found(self, job: Job, about: StoredFile, options: dict[str, Any]) -> list[JsonObject] | None:
        """All parts that were made of this file before; None where one is missing."""
        parts: list[StoredFile] = []
        while not parts or len(parts) < parts[0].facts.get(_PARTS, 1):
            part = await job.files.made(self._recipe(about, options, len(parts)))
            if part is None:
                return None
            parts.append(part)
        return [shown(part, about) for part in parts]

    def _recipe(self, about: StoredFile, options: dict[str, Any], number: int) -> str:
        stem = about.name.rpartition(".")[0] or about.name
        whole = [VERSION, self.name, about.sha256, options, stem] + ([number] if number else [])
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def wanted_files(job: Job, *, every: bool = False) -> Sequence[str]:
    """`inputs.file`, or every one of `inputs.files`; without them all of the payload's `files`, or its first file.

    every: all files of `inputs`, wherever they stand; without `inputs` all of the payload."""
    if every:
        first = [_as_references(job.inputs.get(name)) for name in ("files", "file")]
        return job.files.named_in([*first, job.inputs])
    for source in (job.inputs, job.payload):
        for name in ("files", "file"):
            if name in source and (named := job.files.named_in(_as_references(source[name]))):
                return named
    return job.files.named_in(job.payload)[:1]


def _as_references(value: Any) -> Any:
    """Also a plain file id, or a list of them, which a template may give."""
    if isinstance(value, str):
        return {"file": value}
    return [_as_references(it) for it in value] if isinstance(value, list) else value


def _told(made: list[JsonObject], bad: list[tuple[str, str]]) -> Outcome:
    said = "; ".join(f"{name}: {reason}" for name, reason in bad)
    if not made:
        return Failure(ErrorClass.PERMANENT, Cause.BAD_OUTPUT, said[:500])
    result = {"files": made} | ({"failed": [{"name": name, "message": text} for name, text in bad]} if bad else {})
    if bad:
        return Success(
            result=result, ask="partial_result", ask_message=f"Some files could not be worked on. {said}"[:500]
        )
    return Success(result=result)


def shown(file: StoredFile, source: StoredFile | None = None) -> JsonObject:
    """A kept file as a task's result shows it. source: the one that it was made from."""
    names = {"file_id": file.file_id, "name": file.name, "type": file.type, "bytes": file.bytes, "file": file.file_id}
    return {"notes": [], **file.facts, **names} | ({"source": source.file_id} if source else {})


def check_size(path: Path, job: Job) -> None:
    """Of what was made. Raises BadFile where it is more than the board keeps."""
    if (size := path.stat().st_size) > job.files.max_bytes:
        raise BadFile(f"What was made has {size} bytes; a file may have {job.files.max_bytes} (BOARD_MAX_FILE).")


def _new_name(name: str, suffix: str, ending: str) -> str:
    return f"{name.rpartition('.')[0] or name}{suffix}{ending}"
