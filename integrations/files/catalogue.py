"""All handlers of file work: what each is called, what it takes, and what does it."""

from __future__ import annotations

from board.ports import Handler
from integrations.files.archive.handler import Package
from integrations.files.documents.make import MAKERS as DOCUMENTS
from integrations.files.documents.options import OPTIONS as DOCUMENT_OPTIONS
from integrations.files.handler import FileHandler
from integrations.files.images.make import MAKERS as IMAGES
from integrations.files.images.options import OPTIONS as IMAGE_OPTIONS
from integrations.files.pool import Pool
from integrations.files.tables.make import MAKERS as TABLES
from integrations.files.tables.options import OPTIONS as TABLE_OPTIONS
from integrations.files.video.make import MAKERS as VIDEOS
from integrations.files.video.options import OPTIONS as VIDEO_OPTIONS


def all_handlers() -> list[Handler]:
    pool = Pool()
    makers = IMAGES | DOCUMENTS | TABLES | VIDEOS
    options = IMAGE_OPTIONS | DOCUMENT_OPTIONS | TABLE_OPTIONS | VIDEO_OPTIONS
    return [*(FileHandler(name, make, options[name], pool) for name, make in makers.items()), Package(pool)]
