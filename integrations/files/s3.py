"""Files in an S3 bucket, or in one of the many servers that speak S3: MinIO, Ceph, Garage, R2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from board.ports import ContentGone, StorageError

if TYPE_CHECKING:
    from obstore.store import S3Store

PIECE = 1024**2  # bytes: a call to a far server costs more than a read of the disk
# Tried again by the client itself for so long; then the task is, with its own pauses.
_RETRIES: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
_CLIENT: Any = {"connect_timeout": "10s", "timeout": "120s"}
_KNOWN = ("endpoint", "region", "path_style")


def open_s3(url: str) -> S3Storage:
    """Entry point of `board.storage`. url: `s3://bucket/folder?endpoint=https://s3.example.org&region=eu`.

    The key stands in the address, `s3://KEY:SECRET@bucket`, or in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. Raises
    ValueError, which says what is wrong.
    """
    try:
        from obstore.store import S3Store
    except ImportError:
        raise ValueError("needs one more package: pip install 'ai-task-board[s3]'") from None
    parts = urlsplit(url)
    if not parts.hostname:
        raise ValueError("must name a bucket, such as s3://my-bucket/board")
    asked = parse_qs(parts.query)
    if unknown := sorted(set(asked) - set(_KNOWN)):
        raise ValueError(f"has an unknown part “{unknown[0]}”; there are {', '.join(_KNOWN)}")
    given = {name: values[-1] for name, values in asked.items()}
    config: Any = {"region": given.get("region", "us-east-1")}
    if endpoint := given.get("endpoint"):
        if not endpoint.startswith(("http://", "https://")):
            raise ValueError("has an endpoint that does not begin with http:// or https://")
        config["endpoint"] = endpoint
    if parts.username:
        config["access_key_id"] = unquote(parts.username)
        config["secret_access_key"] = unquote(parts.password or "")
    # Bucket names as hosts need a certificate and a name of their own for each; only Amazon's own servers have that.
    config["virtual_hosted_style_request"] = given.get("path_style", "yes" if endpoint else "no") == "no"
    client = _CLIENT | {"allow_http": str(endpoint or "").startswith("http://")}
    # The bucket as it was written: urlsplit would make it small.
    bucket = parts.netloc.rpartition("@")[2]
    store = S3Store(
        bucket, prefix=parts.path.strip("/") or None, config=config, client_options=client, retry_config=_RETRIES
    )
    return S3Storage(store, f"the bucket {bucket}" + (f" at {endpoint}" if endpoint else ""))


class S3Storage:
    def __init__(self, store: S3Store, where: str) -> None:
        self._store = store
        self.where = where

    def put(self, key: str, source: Path) -> None:
        try:
            with self._plain_errors():
                if not self._is_there(key):
                    self._store.put(_path(key), source)  # in parts from 5 MB on; there as a whole or not at all
        except ContentGone as error:
            raise StorageError(
                f"{self.where[0].upper()}{self.where[1:]} does not exist. Make it.", transient=False
            ) from error

    def has(self, key: str) -> bool:
        with self._plain_errors():
            return self._is_there(key)

    def read(self, key: str, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        import obstore

        with self._plain_errors():
            options: Any = {}
            if start or length is not None:
                if length == 0:
                    return iter(())
                options = {"range": {"offset": start} if length is None else (start, start + length)}
            found = obstore.get(self._store, _path(key), options=options)
        return self._pieces(found)

    def _pieces(self, found: Any) -> Iterator[bytes]:
        with self._plain_errors():
            for piece in found.stream(min_chunk_size=PIECE):
                yield bytes(piece)

    def local(self, key: str) -> Path | None:
        return None

    def remove(self, key: str) -> None:
        from obstore.exceptions import NotFoundError

        with self._plain_errors():
            try:
                self._store.delete(_path(key))
            except (FileNotFoundError, NotFoundError):
                return

    def contents(self) -> Iterator[tuple[str, float]]:
        with self._plain_errors():
            for some in self._store.list():
                for it in some:
                    yield it["path"].rpartition("/")[2], it["last_modified"].timestamp()

    def _is_there(self, key: str) -> bool:
        from obstore.exceptions import NotFoundError

        try:
            self._store.head(_path(key))
        except (FileNotFoundError, NotFoundError):
            return False
        return True

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError

        try:
            yield
        except (FileNotFoundError, NotFoundError) as error:
            raise ContentGone(self.where) from error
        except (PermissionDeniedError, UnauthenticatedError) as error:
            message = f"The board may not use {self.where}. Check the key in BOARD_STORAGE_URL and its rights."
            raise StorageError(message, transient=False) from error
        except (BaseError, OSError, ValueError) as error:
            message = f"{self.where[0].upper()}{self.where[1:]} does not answer as it should; see BOARD_STORAGE_URL."
            raise StorageError(message, transient=True) from error


def _path(key: str) -> str:
    return f"{key[:2]}/{key}"
