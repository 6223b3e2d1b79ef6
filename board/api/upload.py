"""Reads a multipart body as it arrives: each file goes straight into a temporary file, never into memory."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from typing import Self
from urllib.parse import unquote

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from board.api.deps import in_thread
from board.api.errors import ApiError, field_error
from board.files.ledger import Files
from board.files.spool import Spool, TooLarge

FIELD = "file"
# Bytes gathered before a thread writes them: a hop to a thread costs as much as writing this.
GATHER = 256 * 1024
# What may come in besides the files themselves: borders and headers of the parts.
FRAME = 64 * 1024
# After a refusal so much more is read and dropped: most callers look at the answer only when they have sent all.
DRAIN = 8 * 1024**2
_EXTENDED = re.compile(rb"filename\*=utf-8'[^']*'([^;\s]+)", re.IGNORECASE)


class Upload:
    """`with Upload(files, limit) as upload: await upload.read(request)`; then `upload.came` holds the files.

    limit: bytes of all files of one request together.
    """

    def __init__(self, files: Files, limit: int) -> None:
        self._files, self._limit = files, limit
        self._opened = ExitStack()
        self._header, self._value = b"", b""
        self._disposition = b""
        self._total = 0
        self._ended = False
        self.came: list[tuple[str | None, Spool]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    async def read(self, request: Request) -> None:
        """Raises ApiError (400, 413, 422), StorageError."""
        parser = self._parser(request)
        body = request.stream()
        frame = 0
        try:
            async for piece in _gathered(body):
                frame += len(piece)
                if frame > self._limit + FRAME:
                    raise self._too_much()
                await in_thread(lambda piece=piece: parser.write(piece))  # type: ignore[misc]
            if frame and not self._ended:
                raise _unreadable()
        except (FormParserError, ClientDisconnect) as error:
            raise _unreadable() from error
        except TooLarge as error:
            refused = ApiError(413, "file_too_large", str(error), [{"limit": error.limit, "field": FIELD}])
            raise await _after_the_rest(request, body, refused) from error
        except ApiError as error:
            raise await _after_the_rest(request, body, error) from error.__cause__
        if not self.came:
            raise field_error(FIELD, "file is missing; send each file as a multipart field of this name.", "missing")

    def _parser(self, request: Request) -> MultipartParser:
        kind, options = parse_options_header(request.headers.get("content-type", ""))
        if kind != b"multipart/form-data" or not options.get(b"boundary"):
            raise ApiError(
                422,
                "not_multipart",
                "Send the file as multipart/form-data, in a field called file.",
                [{"field": FIELD, "message": "is missing"}],
            )
        return MultipartParser(
            options[b"boundary"],
            {
                "on_part_begin": self._begin,
                "on_header_field": self._name,
                "on_header_value": self._text,
                "on_header_end": self._header_ended,
                "on_headers_finished": self._open,
                "on_part_data": self._data,
                "on_part_end": self._close,
                "on_end": self._end,
            },
        )

    # -- what the parser calls, in the order of a part ---------------------------------------------------------------

    def _begin(self) -> None:
        self._header, self._value, self._disposition = b"", b"", b""

    def _name(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _text(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_ended(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header, self._value = b"", b""

    def _open(self) -> None:
        _, options = parse_options_header(self._disposition)
        field = options.get(b"name", b"").decode(errors="replace")[:100]
        if field != FIELD:
            raise field_error(
                field or "body",
                f"“{field}” is not a field of this call; send files in the field file.",
                "unknown_field",
            )
        self.came.append((_file_name(self._disposition, options), self._opened.enter_context(self._files.spool())))

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._total += end - start
        if self._total > self._limit:
            raise self._too_much()
        self.came[-1][1].write(data[start:end])

    def _close(self) -> None:
        self.came[-1][1].finish()

    def _end(self) -> None:
        self._ended = True

    def _too_much(self) -> ApiError:
        message = f"All files of one request may have at most {self._limit} bytes together (BOARD_MAX_UPLOAD)."
        return ApiError(413, "upload_too_large", f"{message} Send them one by one.", [{"limit": self._limit}])


def _unreadable() -> ApiError:
    return ApiError(400, "invalid_multipart", "The multipart body is broken or was cut short. Send it once more.")


def _file_name(disposition: bytes, options: dict[bytes, bytes]) -> str | None:
    if found := _EXTENDED.search(disposition):
        return unquote(found[1].decode("ascii", "replace"))
    given = options.get(b"filename", b"").decode(errors="replace")
    for escaped, character in (("%22", '"'), ("%0D", "\r"), ("%0A", "\n")):  # what browsers may not send as it is
        given = given.replace(escaped, character)
    return given or None


async def _gathered(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    held: list[bytes] = []
    size = 0
    async for chunk in body:
        held.append(chunk)
        size += len(chunk)
        if size >= GATHER:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


async def _after_the_rest(request: Request, body: AsyncIterator[bytes], refused: ApiError) -> ApiError:
    """The refusal, to be answered when the caller has sent the rest. A body that does not say how long it is may have
    no end: after DRAIN bytes more the connection is closed."""
    if "content-length" in request.headers:
        return refused  # the server drops the rest by itself
    dropped = 0
    with suppress(ClientDisconnect):
        async for chunk in body:
            dropped += len(chunk)
            if dropped > DRAIN:
                refused.headers = {"Connection": "close"}
                break
    return refused
