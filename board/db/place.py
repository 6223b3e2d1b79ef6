"""Where an SQLite file may lie: on a disk of this machine, never on one that is shared over a network.

SQLite's write-ahead log needs memory that all its processes share, and file locks that hold. Network file systems have
neither, and what they lose is committed work: https://www.sqlite.org/wal.html, "Disadvantages".
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from board.db.engine import normal_url

# Of Linux; elsewhere there is no such list, and nothing is refused.
MOUNTS = Path("/proc/self/mountinfo")
_PLAIN = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "ncpfs",
    "afs",
    "davfs",
    "ceph",
    "glusterfs",
    "lustre",
    "beegfs",
    "gpfs",
)
_FUSE = ("sshfs", "glusterfs", "ceph", "s3fs", "rclone", "gcsfuse", "juicefs")
NETWORK = frozenset((*_PLAIN, *(f"fuse.{name}" for name in _FUSE)))


class BadPlace(Exception):
    """The database must not lie there; the text says what to do."""


def check(database_url: str) -> None:
    """Raise BadPlace when an SQLite database lies on a network file system."""
    path = sqlite_path(database_url)
    if path is not None and (kind := filesystem(path)) in NETWORK:
        raise BadPlace(
            f"The SQLite database {path} lies on a network file system ({kind}), where committed work can be lost. "
            "Put it on a local disk, or use PostgreSQL: BOARD_DATABASE_URL=postgresql://user:password@host/board."
        )


def sqlite_path(database_url: str) -> Path | None:
    """The file of an SQLite database; None for PostgreSQL and for a database in memory."""
    url = normal_url(database_url)
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    return Path(os.path.realpath(url.database))


def filesystem(path: Path) -> str | None:
    """The kind of file system that holds a path, which need not exist; None where it cannot be told."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    found: tuple[int, str] | None = None
    for line in lines:  # later mounts hide earlier ones at the same place
        mount, _, rest = line.partition(" - ")
        fields, kind = mount.split(), rest.split()
        if len(fields) < 5 or not kind:
            continue
        place = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4]))
        if path.is_relative_to(place) and (found is None or len(place.parts) >= found[0]):
            found = (len(place.parts), kind[0])
    return found[1] if found else None
