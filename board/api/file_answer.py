"""A file as an HTTP answer: whole or a range of it, and never something that runs in our own origin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from board.files.names import disposition
from board.ports import Storage

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_PICTURE = r"image/(jpeg|png|gif|webp|avif)"
# Kinds that a browser only shows. HTML, SVG and XML may carry scripts: they are told as unknown bytes.
_HARMLESS = re.compile(rf"{_PICTURE}|image/(tiff|heic)|audio/.+|video/.+|application/(pdf|json|zip|gzip)|text/plain")
_INLINE = re.compile(_PICTURE)
_PROTECTED = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Accept-Ranges": "bytes",
    "Cache-Control": "private, max-age=3600",
}


def is_shown(kind: str) -> bool:
    """Whether a browser may show it inside a page: pictures that cannot carry scripts."""
    return _INLINE.fullmatch(kind) is not None


def file_answer(request: Request, storage: Storage, file: Mapping[Any, Any], *, inline: bool = False) -> Response:
    """file: a row of the file ledger. inline: pictures are shown instead of saved. Raises ContentGone, StorageError."""
    etag = f'"{file["sha256"]}"'
    kind = str(file["type"]) if _HARMLESS.fullmatch(str(file["type"])) else "application/octet-stream"
    shown = inline and is_shown(kind)
    headers = _PROTECTED | {"ETag": etag, "Content-Disposition": disposition(file["name"], inline=shown)}
    if _matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    size = int(file["bytes"])
    span = _span(request, etag, size)
    if span is None:
        return Response(status_code=416, headers=headers | {"Content-Range": f"bytes */{size}"})
    start, length = span
    status = 200
    if length != size:
        status = 206
        headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{size}"
    headers["Content-Length"] = str(length)
    if getattr(request.state, "headless", False):
        return Response(status_code=status, headers=headers, media_type=kind)
    content = _begun(storage.read(file["sha256"], start, length))
    return StreamingResponse(content, status, headers, media_type=kind)


def _begun(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The first piece is read at once, so that what cannot be read is an error and not an answer that breaks off."""
    first = next(pieces, b"")

    def all_of_it() -> Iterator[bytes]:
        yield first
        yield from pieces

    return all_of_it()


def _span(request: Request, etag: str, size: int) -> tuple[int, int] | None:
    """(first byte, length) that is asked for; None where it lies outside. Several ranges at once get the whole."""
    asked = _RANGE.fullmatch(request.headers.get("range", "").replace(" ", ""))
    only_if = request.headers.get("if-range")
    if asked is None or asked[0] == "bytes=-" or (only_if is not None and only_if != etag):
        return 0, size
    if not asked[1]:  # the last n bytes
        length = min(int(asked[2]), size)
        return (size - length, length) if length else None
    start = int(asked[1])
    end = min(int(asked[2]), size - 1) if asked[2] else size - 1
    return (start, end - start + 1) if start <= end else None


def _matches(given: str | None, etag: str) -> bool:
    return given is not None and (given.strip() == "*" or etag in re.split(r"\s*,\s*", given.replace("W/", "").strip()))
