"""`file.put`: files of the board's storage go to another place, each whole, under a name that follows from the task.

To put the same bytes under the same name a second time changes nothing. So a call whose answer was lost is made again.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from board.ports import (
    AlreadyConfirmed,
    Answer,
    Cause,
    ConnectionUser,
    ConnectionView,
    ErrorClass,
    Failure,
    Http,
    HttpError,
    Job,
    JsonObject,
    Later,
    NotSent,
    NotStarted,
    OperationBusy,
    OperationConflict,
    Outcome,
    Refused,
    SentOperation,
    StoredFile,
    Success,
    Tried,
)
from integrations.files.handler import NO_FILE, wanted_files
from integrations.files.put.names import BadName, safe_part, safe_path
from integrations.files.put.target import BadTarget, Target, target_of

MARGIN = 2.0  # seconds of the task's time-out that are left for writing down how it went
LOOK_SECONDS = 10.0
_PROBE = "board-connection-test"  # is asked for and never written
_INPUTS = ("file", "files", "name", "folder")


class FilePut:
    name = "file.put"
    phases = ("work", "act")
    connection_kind: str | None = "files"
    side_effects = False
    options: tuple[str, ...] = ()

    def check(self, handler: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        inputs = handler.get("inputs") or {}
        unknown = [(f"inputs.{name}", f"is not known to {self.name}") for name in inputs if name not in _INPUTS]
        if inputs and not ("file" in inputs or "files" in inputs):
            unknown.append(("inputs.files", 'is missing: the files to put, such as "{{ result.files }}"'))
        return unknown

    async def run(self, job: Job) -> Outcome:
        connection = job.connection
        assert connection is not None
        try:
            files = [await job.files.about(file_id) for file_id in wanted_files(job)]
            if not files:
                return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, NO_FILE)
            paths = _paths(job, files)
            target = target_of(connection)
        except (BadName, BadTarget) as error:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error))
        what = json.dumps([[path, file.sha256] for path, file in zip(paths, files, strict=True)]).encode()
        try:
            await job.send(kind=self.name, target=_said(target, paths), request=what)
        except AlreadyConfirmed as done:
            return Success(_result(target, paths, files), reference=done.reference)
        except OperationBusy as busy:
            return Later(str(busy), busy.seconds)
        except OperationConflict as conflict:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(conflict), open_operation=conflict.unknown)
        return await self._put_all(job, target, paths, files)

    async def reconcile(self, job: Job, operation: SentOperation) -> Outcome | NotStarted:
        return NotStarted()  # what was put is put again, and is the same

    async def test(self, connection: ConnectionView, http: Http, users: Sequence[ConnectionUser]) -> Sequence[Tried]:
        try:
            url, headers = target_of(connection).call(_PROBE, "HEAD")
            answer = await http.request("HEAD", url, headers=headers, timeout=LOOK_SECONDS)
        except (BadTarget, HttpError) as error:
            return [Tried("wrong", str(error))]
        if answer.status in (401, 403):
            return [Tried("wrong", f"The server refuses the board's credentials ({answer.status}).")]
        if answer.status >= 500:
            return [Tried("wrong", f"The server is in trouble ({answer.status}).")]
        return [Tried("ok", "The server answers. Nothing was written.")]

    async def _put_all(self, job: Job, target: Target, paths: Sequence[str], files: Sequence[StoredFile]) -> Outcome:
        end = time.monotonic() + max(1.0, job.timeout - MARGIN)
        for number, (path, file) in enumerate(zip(paths, files, strict=True)):
            begun = time.monotonic()
            answer: Answer | HttpError
            try:
                answer = await _put(job, target, path, file, max(1.0, end - begun))
            except HttpError as error:
                answer = error
            failure = _failure(answer, path)
            detail = failure.message if failure else path
            status = answer.status if isinstance(answer, Answer) else None
            job.tried(int((time.monotonic() - begun) * 1000), status, _word(failure), detail)
            if failure is not None:
                return failure
            await job.progress(100 * (number + 1) / len(files), path)
        return Success(_result(target, paths, files), reference=target.address(paths[0]))


async def _put(job: Job, target: Target, path: str, file: StoredFile, seconds: float) -> Answer:
    url, headers = target.call(path)
    about = {"Content-Type": file.type, "Content-Length": str(file.bytes)}
    return await job.http.request("PUT", url, headers={**headers, **about}, content=_pieces(job, file), timeout=seconds)


def _pieces(job: Job, file: StoredFile) -> AsyncIterator[bytes] | bytes:
    return job.files.read(file.file_id) if file.bytes else b""


def _paths(job: Job, files: Sequence[StoredFile]) -> list[str]:
    """One for each file, all different. Raises BadName."""
    given = job.inputs if job.phase == "act" or "name" in job.inputs or "folder" in job.inputs else {}
    name, folder = given.get("name"), given.get("folder")
    if name is not None:
        if len(files) > 1:
            raise BadName(f"inputs.name names one file, and here are {len(files)}. Give inputs.folder instead.")
        return [safe_path(str(name))]
    before = safe_path(job.task_id if folder is None else str(folder))
    paths: list[str] = []
    for file in files:
        stem, dot, ending = (safe_part(file.name) or file.file_id).rpartition(".")
        path, number = safe_path(f"{before}/{stem}{dot}{ending}"), 1
        while path in paths:
            number += 1
            path = safe_path(f"{before}/{stem or ending}-{number}{dot + ending if stem else ''}")
        paths.append(path)
    return paths


def _failure(answer: Answer | HttpError, path: str) -> Failure | None:
    """None: the file is there."""
    match answer:
        case Refused():
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(answer))
        case HttpError():
            sent = "" if isinstance(answer, NotSent) else " It is put again, under the same name."
            return Failure(ErrorClass.TRANSIENT, Cause.NETWORK, f"{answer}{sent}")
    status = answer.status
    if 200 <= status < 300:
        return None
    said = f"The server answered {status} to “{path}”."
    if status in (408, 425) or status >= 500:
        return Failure(ErrorClass.TRANSIENT, Cause.UPSTREAM_5XX, said, http_status=status)
    if status == 429:
        return Failure(ErrorClass.QUOTA, Cause.RATE_LIMIT, said, http_status=status)
    if status in (401, 403):
        said += " Check the credentials of the connection, and what they may write."
        return Failure(ErrorClass.PERMANENT, Cause.AUTH, said, http_status=status)
    return Failure(ErrorClass.PERMANENT, Cause.UPSTREAM_4XX, said, http_status=status)


def _word(failure: Failure | None) -> str:
    if failure is None:
        return "confirmed"
    return "rejected" if failure.error_class is ErrorClass.PERMANENT else "transient"


def _said(target: Target, paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{target.address(paths[0]).partition('?')[0]}{more}"


def _result(target: Target, paths: Sequence[str], files: Sequence[StoredFile]) -> JsonObject:
    put = [
        {"file_id": file.file_id, "name": path, "url": target.address(path).partition("?")[0], "bytes": file.bytes}
        for path, file in zip(paths, files, strict=True)
    ]
    return {"put": put}
