"""What a type may say to each kind of work on documents, checked when the type is applied."""

from __future__ import annotations

from board.ports import ENCODINGS
from integrations.files.options import Choice, Number, Option

OPTIONS: dict[str, tuple[Option, ...]] = {
    "document.text": (Choice("encoding", ENCODINGS),),
    "document.preview": (
        Number("pages", 1, 100, default=1),
        Number("size", 16, 4096, default=1024),
        Choice("format", ("jpeg", "png", "webp"), default="jpeg"),
        Number("quality", 1, 100),
    ),
}
