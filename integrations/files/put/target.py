"""Where files are put: an address for each, and the headers that let the board in."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from board.ports import ConnectionView
from integrations.files.put.names import quoted

SIGNED_SECONDS = 900  # a signed address is used at once; servers refuse one of a clock that is more than this off


class BadTarget(ValueError):
    """The connection cannot be used. Its text says why."""


class Target(Protocol):
    def address(self, path: str) -> str:
        """Where the file of this path is afterwards, for people; without secrets."""

    def call(self, path: str, method: str = "PUT") -> tuple[str, Mapping[str, str]]:
        """The address to call, which may hold a signature, and the headers to send."""


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """A server that takes PUT: WebDAV, a web server, an object store with signed folders."""

    base: str
    headers: Mapping[str, str]

    def address(self, path: str) -> str:
        before, question, query = self.base.partition("?")
        return f"{before.rstrip('/')}/{quoted(path)}{question}{query}"

    def call(self, path: str, method: str = "PUT") -> tuple[str, Mapping[str, str]]:
        return self.address(path), self.headers


@dataclass(frozen=True, slots=True)
class S3Target:
    """A bucket of Amazon's, or of a server that speaks S3. The signature stands in the address that is called."""

    base: str
    prefix: str
    store: Any

    def address(self, path: str) -> str:
        return f"{self.base.rstrip('/')}/{quoted(path)}"

    def call(self, path: str, method: str = "PUT") -> tuple[str, Mapping[str, str]]:
        import obstore

        key = f"{self.prefix}/{path}" if self.prefix else path
        return obstore.sign(self.store, method, key, timedelta(seconds=SIGNED_SECONDS)), {}  # type: ignore[call-overload]


def target_of(connection: ConnectionView) -> Target:
    """Raises BadTarget."""
    region = connection.options.get("region")
    if region is None:
        return HttpTarget(connection.url, _headers(connection.secrets.get("auth") or {}))
    return _s3(connection, region)


def _s3(connection: ConnectionView, region: str) -> S3Target:
    try:
        from obstore.store import S3Store
    except ImportError:
        raise BadTarget(
            "To put files into S3 the board needs one more package: pip install 'ai-task-board[s3]'"
        ) from None
    parts = urlsplit(connection.url)
    bucket, _, prefix = unquote(parts.path).strip("/").partition("/")
    if not bucket:
        raise BadTarget(
            f"The address of the connection “{connection.name}” names no bucket. Write it as "
            "https://s3.example.org/my-bucket/folder."
        )
    config: Any = {
        "endpoint": f"{parts.scheme}://{parts.netloc}",
        "region": region,
        "access_key_id": connection.secrets.get("key") or "",
        "secret_access_key": connection.secrets.get("secret") or "",
        "virtual_hosted_style_request": False,
    }
    store = S3Store(bucket, config=config, client_options={"allow_http": parts.scheme == "http"})
    return S3Target(connection.url, prefix, store)


def _headers(auth: Mapping[str, Any]) -> Mapping[str, str]:
    if basic := auth.get("basic"):
        pair = f"{basic['user']}:{basic.get('password', '')}".encode()
        return {"Authorization": "Basic " + base64.b64encode(pair).decode()}
    return dict(auth.get("header") or {})
