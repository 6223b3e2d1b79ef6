"""The storage of this installation, by BOARD_STORAGE_URL: a folder, or what a package registers for another scheme."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit

from board.files.local import LocalStorage
from board.ports import Storage

GROUP = "board.storage"
_SCHEME = re.compile(r"^([a-z][a-z0-9+.-]*):")


def schemes() -> list[str]:
    """What BOARD_STORAGE_URL may begin with."""
    return ["file", *sorted(point.name for point in entry_points(group=GROUP))]


def check_url(url: str) -> None:
    """Raises ValueError, which says what is wrong with the address, as far as it can be told without opening it."""
    found = _SCHEME.match(url)
    if found is None:
        raise ValueError("must start with file: or s3:")
    if found[1] not in schemes():
        raise ValueError(f"“{found[1]}:” is no kind of storage that is installed; there are {', '.join(schemes())}")
    if found[1] == "file":
        _folder(url, Path())


def open_storage(url: str, data_dir: Path) -> Storage:
    """The storage behind an address. `file:` alone is the folder `files` of the data folder; `file:///srv/files` and
    `file:files` name another one. Raises ValueError, which says what is wrong with the address."""
    check_url(url)
    scheme = url.partition(":")[0]
    if scheme == "file":
        return LocalStorage(_folder(url, data_dir))
    [point] = [point for point in entry_points(group=GROUP) if point.name == scheme]
    return cast(Storage, point.load()(url))


def _folder(url: str, data_dir: Path) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise ValueError("must name a folder of this machine, such as file:///srv/files")
    return Path(unquote(parts.path)) if parts.path else data_dir / "files"
