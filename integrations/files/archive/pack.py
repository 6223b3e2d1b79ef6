"""One zip of several files; runs in a child process, behind everything else."""

from __future__ import annotations

import zipfile
from pathlib import Path
from shutil import copyfileobj

_PIECE = 1024 * 1024
# Media types that are compressed already: only time would be lost.
_DENSE = ("image/", "video/", "audio/", "application/zip", "application/gzip", "application/vnd.openxml")
_AIRY = ("image/bmp", "image/tiff", "image/svg+xml", "audio/wav")
_MADE = (1980, 1, 1, 0, 0, 0)  # the beginning of zip's time: the same files give the same bytes


def pack(files: list[tuple[str, str, str]], target: str) -> str:
    """files: (path, name in the archive, media type). Returns target."""
    with zipfile.ZipFile(target, "x", allowZip64=True) as archive:
        for path, name, kind in files:
            entry = zipfile.ZipInfo(name, _MADE)
            dense = kind.startswith(_DENSE) and not kind.startswith(_AIRY)
            entry.compress_type = zipfile.ZIP_STORED if dense else zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            entry.file_size = Path(path).stat().st_size
            with Path(path).open("rb") as source, archive.open(entry, "w") as inside:
                copyfileobj(source, inside, _PIECE)
    return target
