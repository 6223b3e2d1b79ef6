"""Work on the files of one task: each in a child process, each for itself, and told together."""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
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
from integrations.files.bad_file import BadFile
from integrations.files.options import Option, problems, values
from integrations.files.pool import Pool

# Part of every recipe: raised when the same options give other content, so that old results are not taken for new.
VERSION = 1
_MARGIN = 2.0  # seconds of the task's time-out that are left for keeping what was made

Make = Callable[[str, str, int, dict[str, Any]], Any]


class FileHandler:
    """name: as `handler.use` has it. make: the function that a child runs for one file."""

    connection_kind: str | None = None
    side_effects = False
    phases = ("work", "act")

    def __init__(self, name: str, make: Make, options: Sequence[Option], pool: Pool) -> None:
        self.name = name
        self.options = tuple(it.name for it in options)
        self._make, self._options, self._pool = make, options, pool

    def check(self, handler: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        return problems(self._options, handler)

    async def run(self, job: Job) -> Outcome:
        file_ids = wanted_files(job)
        if not file_ids:
            message = 'The payload names no file. Upload one with POST /files and name it as {"file": "file_…"}.'
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, message)
        options = values(self._options, job.options)
        end = asyncio.get_running_loop().time() + max(1.0, job.timeout - _MARGIN)
        made: list[JsonObject] = []
        bad: list[tuple[str, str]] = []
        for number, file_id in enumerate(file_ids):
            about = await job.files.about(file_id)
            try:
                made.append(await self._one(job, about, options, end - asyncio.get_running_loop().time()))
            except BadFile as error:
                bad.append((about.name, str(error)))
            await job.progress(100 * (number + 1) / len(file_ids))
        return _told(made, bad)

    async def reconcile(self, job: Job, operation: SentOperation) -> Outcome | NotStarted:
        return NotStarted()  # nothing ever leaves the house

    async def _one(self, job: Job, about: StoredFile, options: dict[str, Any], seconds: float) -> JsonObject:
        """What is made of one file; found, where it was made before. Raises BadFile."""
        recipe = self._recipe(about, options)
        if (found := await job.files.made(recipe)) is not None:
            return _shown(found, about)
        with tempfile.TemporaryDirectory(prefix="board-") as folder:
            async with job.files.local(about.file_id) as path:
                made = await self._pool.run(
                    job.files.slots, max(1.0, seconds), self._make, str(path), folder, job.files.max_pixels, options
                )
            facts = {name: value for name, value in made.items() if name not in ("path", "suffix", "ending")}
            name = _new_name(about.name, made["suffix"], made["ending"])
            return _shown(await job.files.keep(Path(made["path"]), name, recipe=recipe, facts=facts), about)

    def _recipe(self, about: StoredFile, options: dict[str, Any]) -> str:
        stem = about.name.rpartition(".")[0] or about.name
        whole = json.dumps([VERSION, self.name, about.sha256, options, stem], sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()


def wanted_files(job: Job) -> Sequence[str]:
    """`inputs.file`, or every one of `inputs.files`; without them all of the payload's `files`, or its first file."""
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


def _shown(file: StoredFile, source: StoredFile) -> JsonObject:
    shown = {"file_id": file.file_id, "name": file.name, "type": file.type, "bytes": file.bytes}
    return {"notes": [], **file.facts, **shown, "file": file.file_id, "source": source.file_id}


def _new_name(name: str, suffix: str, ending: str) -> str:
    return f"{name.rpartition('.')[0] or name}{suffix}{ending}"
