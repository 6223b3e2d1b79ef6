"""All handlers of file work: what each is called, what it takes, and where what does it is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from board.ports import Handler
from integrations.files.archive.handler import Package
from integrations.files.documents.options import OPTIONS as DOCUMENT_OPTIONS
from integrations.files.documents.preview import DocumentPreview
from integrations.files.handler import FileHandler
from integrations.files.images.options import OPTIONS as IMAGE_OPTIONS
from integrations.files.options import Option
from integrations.files.pool import Pool
from integrations.files.put.action import FilePut
from integrations.files.tables.options import OPTIONS as TABLE_OPTIONS
from integrations.files.video.options import OPTIONS as VIDEO_OPTIONS

# By the module whose MAKERS do the work. Only children load it: what it needs fills a worker's memory for nothing.
KINDS: Mapping[str, Mapping[str, Sequence[Option]]] = {
    "integrations.files.images.make": IMAGE_OPTIONS,
    "integrations.files.documents.make": DOCUMENT_OPTIONS,
    "integrations.files.tables.make": TABLE_OPTIONS,
    "integrations.files.video.make": VIDEO_OPTIONS,
}
# Those that can do more than work on the files of a task.
_MORE: Mapping[str, type[FileHandler]] = {"document.preview": DocumentPreview}


def all_handlers() -> list[Handler]:
    pool = Pool()
    known = [
        _MORE.get(name, FileHandler)(name, of, options, pool)
        for of, kinds in KINDS.items()
        for name, options in kinds.items()
    ]
    return [*known, Package(pool), FilePut()]
