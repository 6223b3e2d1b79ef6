"""The files of a task on its review: pictures, documents and plain texts are shown, everything else can be saved."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from board.api.file_answer import file_answer, is_shown
from board.files import ledger
from board.files.previews import StillBusy
from board.files.references import is_file_id
from board.ports import FileMissing, NotShown, StorageError
from board.web.hidden import Found, strip
from board.web.routing import PageRouter
from board.web.visit import TheReader, Visit

router = PageRouter()

_MOST = 12  # on one page; the task's own page and the API have them all
_TEXTS = {"text/plain", "text/csv", "application/json"}
_TEXT_BYTES = 20_000  # of a text file: some ten screens
# Of a page that stands in a frame of ours: pictures and styles, and nothing that runs.
_FRAMED = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'self'; base-uri 'none'; "
        "form-action 'none'; sandbox allow-same-origin"
    )
}


@dataclass(frozen=True, slots=True)
class Attachment:
    """kind: picture, document, text, other. text: the beginning of a text; more: whether it goes on.

    made: the work made it."""

    file_id: str
    name: str
    type: str
    bytes: int
    kind: str
    made: bool
    text: str = ""
    more: bool = False


def attachments(visit: Visit, connection: Any, payload: Any, result: Any) -> list[Attachment]:
    """The files that the output and the input name, each once, those of the output first; at most _MOST."""
    found: dict[str, Attachment] = {}
    for value, made in ((result, True), (payload, False)):
        for file_id in named(value):
            if file_id not in found and len(found) < _MOST and (one := _one(visit, connection, file_id, made)):
                found[file_id] = one
    return list(found.values())


@router.show("/attachments/{file_id}")
def attachment(request: Request, file_id: str, visit: TheReader) -> Response:
    """A file for whoever is signed in. Pictures are shown, with a policy under which nothing of them can run."""
    return file_answer(request, visit.board.files.storage, _row(visit, file_id), inline=True)


@router.show("/attachments/{file_id}/preview")
async def preview(file_id: str, visit: TheReader) -> HTMLResponse:
    """The first pages of a document as pictures, or a sentence that says why there are none."""
    row = await run_in_threadpool(_row, visit, file_id)
    if not visit.board.previews.can_draw(str(row["type"])):
        raise HTTPException(404)
    shown, problem = None, ""
    try:
        shown = await visit.board.previews.of(row)
    except NotShown as error:
        problem = error.why
    except StillBusy:
        problem = "busy"
    name = strip(str(row["name"]), Found())
    values = {"name": name, "preview": shown, "problem": problem, "file_id": file_id}
    answer = await run_in_threadpool(visit.page, "preview.html", **values)
    answer.headers.update(_FRAMED)
    return answer


def _row(visit: Visit, file_id: str) -> Any:
    board = visit.board
    try:
        with board.db.read() as connection:
            row = ledger.visible(connection, visit.actor, file_id)
    except ledger.NoSuchFile as error:
        raise HTTPException(404) from error
    board.files.identity.check()
    return row


def _one(visit: Visit, connection: Any, file_id: str, made: bool) -> Attachment | None:
    try:
        row = ledger.visible(connection, visit.actor, file_id)
    except ledger.NoSuchFile:
        return None
    kind = str(row["type"])
    shown = "picture" if is_shown(kind) else "text" if kind in _TEXTS else "other"
    if visit.board.previews.can_draw(kind):
        shown = "document"
    text, more = _beginning(visit, row) if shown == "text" else ("", False)
    name = strip(str(row["name"]), Found())
    return Attachment(file_id, name, kind, int(row["bytes"]), shown, made, text, more)


def _beginning(visit: Visit, row: Any) -> tuple[str, bool]:
    """Empty where the storage does not have it: the page says so when it is saved."""
    length = min(int(row["bytes"]), _TEXT_BYTES)
    try:
        data = b"".join(visit.board.files.storage.read(row["sha256"], 0, length)) if length else b""
    except (StorageError, FileMissing):
        return "", False
    return strip(data.decode("utf-8", "replace"), Found()), length < int(row["bytes"])


def named(value: Any) -> Iterator[str]:
    """Every `{"file": "file_…"}` and `{"file_id": "file_…"}`, however deep."""
    waiting = deque([value])
    while waiting:
        it = waiting.popleft()
        if isinstance(it, dict):
            yield from (it[name] for name in ("file", "file_id") if is_file_id(it.get(name)))
            waiting.extend(it.values())
        elif isinstance(it, list):
            waiting.extend(it)
