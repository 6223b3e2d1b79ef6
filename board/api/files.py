"""/files: uploads, downloads, and links that work without a key for a while."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from board.api.deps import TheActor, TheBoard, TheUploader, in_thread
from board.api.file_answer import file_answer
from board.api.strict import RawRoute, StrictRoute, ok
from board.api.upload import Upload
from board.db.clock import read_now
from board.files import ledger, links

uploads = APIRouter(prefix="/files", tags=["files"], route_class=RawRoute)
router = APIRouter(prefix="/files", tags=["files"], route_class=StrictRoute)
public = APIRouter(tags=["files"])  # the token in the address is the right; outside the API's base

_MULTIPART = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            }
        },
    }
}


@uploads.post("", status_code=201, openapi_extra=_MULTIPART)
async def upload_files(request: Request, board: TheBoard, actor: TheUploader) -> JSONResponse:
    """Store one file, or several, from the multipart field `file`. All of a request are kept, or none.

    One: `{file_id, name, bytes, type}`; several: `{"data": […]}`. Used in payloads as `{"file": "file_id"}`. A file
    that no task uses is removed after a day.
    """
    with Upload(board.files, board.settings.max_upload) as upload:
        await upload.read(request)
        rows = await in_thread(lambda: board.files.keep(upload.came, actor.identity))
        kept = [ledger.document(row) for row in rows]
    return ok(kept[0] if len(kept) == 1 else {"data": kept}, 201)


@router.get("/{file_id}")
def get_file(request: Request, file_id: str, board: TheBoard, actor: TheActor) -> Response:
    """The bytes of a file, as a download; `Range` is understood."""
    with board.db.read() as connection:
        row = ledger.visible(connection, actor, file_id)
    board.files.identity.check()
    return file_answer(request, board.files.storage, row)


@router.get("/{file_id}/link")
def link_file(
    file_id: str,
    board: TheBoard,
    actor: TheActor,
    seconds: Annotated[int, Query(ge=1, le=links.MAX_SECONDS)] = links.DEFAULT_SECONDS,
) -> JSONResponse:
    """An address from which anybody can fetch this file for `seconds`: an hour if not given, at most a week."""
    with board.db.read() as connection:
        row = ledger.visible(connection, actor, file_id)
        moment = read_now(connection)
    url, ends = links.make(board.vault, board.settings.public_url, dict(row), moment, seconds)
    return ok(ledger.document(row) | {"url": url, "expires_at": ends.isoformat()})


@public.get("/files/{token}/{name}")
def fetch_file(request: Request, token: str, name: str, board: TheBoard) -> Response:
    """A file by a link of `GET /api/v1/files/{file_id}/link`. The name is only for whoever reads the address."""
    with board.db.read() as connection:
        file_id = links.read(board.vault, token, read_now(connection))
        row = ledger.find(connection, file_id)
    if row is None:
        raise ledger.NoSuchFile(file_id)
    board.files.identity.check()
    return file_answer(request, board.files.storage, row, inline=True)
