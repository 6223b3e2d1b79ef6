"""What every answer carries: a strict policy for browsers, and no copies in anybody's cache."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

STATIC = Path(__file__).parent / "static"

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    # Not "no-referrer": under that browsers send `Origin: null` with our own forms, and we could not tell them apart.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-robots-tag": "noindex",
    "cache-control": "no-store",
}
# The address of a review link is a secret; its forms bring a seal instead of an origin (`web/forms.py`).
_BY_LINK = "/r/"


def headers_of(path: str) -> dict[str, str]:
    """What an answer at this path carries."""
    return HEADERS | {"referrer-policy": "no-referrer"} if path.startswith(_BY_LINK) else HEADERS


class PageHeaders:
    """Adds `headers_of` its path to every answer that does not say otherwise itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wanted = headers_of(scope.get("path", ""))

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                added = [(k.encode(), v.encode()) for k, v in wanted.items() if k.encode() not in present]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        await self._app(scope, receive, guarded if scope["type"] == "http" else send)


def static_version() -> str:
    """Names the present content of the static files: an address with it never changes its content."""
    digest = hashlib.sha256()
    for path in sorted(STATIC.rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(STATIC).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


# Only these: a page holds the session's token beside what others have written, and its length must not tell of it.
_TEXTS = {".css", ".js", ".svg"}


@lru_cache(maxsize=64)
def _packed(path: str, changed: int) -> bytes:
    """changed: when the file was written, so that it is packed anew after that."""
    return gzip.compress(Path(path).read_bytes(), mtime=0)


def _takes_gzip(scope: Scope) -> bool:
    return any(name == b"accept-encoding" and b"gzip" in value for name, value in scope["headers"])


class VersionedFiles(StaticFiles):
    """The static files under /static/VERSION; modules that import each other stay within one version."""

    def __init__(self, version: str) -> None:
        super().__init__(directory=STATIC)
        self._version = version

    def file_response(self, full_path: Any, stat_result: Any, scope: Scope, status_code: int = 200) -> Response:
        if status_code == 200 and Path(full_path).suffix in _TEXTS and _takes_gzip(scope):
            kind = mimetypes.guess_type(full_path)[0]
            packed = _packed(str(full_path), stat_result.st_mtime_ns)
            answer = Response(packed, media_type=kind, headers={"content-encoding": "gzip", "vary": "accept-encoding"})
        else:
            answer = super().file_response(full_path, stat_result, scope, status_code)
        current = scope["path_params"].get("version") == self._version
        # An older page after an update gets today's file, but nobody keeps it under the older address.
        answer.headers["cache-control"] = "public, max-age=31536000, immutable" if current else "no-cache"
        return answer
