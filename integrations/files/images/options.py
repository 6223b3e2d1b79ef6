"""What a type may say to each kind of work on pictures, checked when the type is applied."""

from __future__ import annotations

from integrations.files.images.formats import FORMATS, POSITIONS
from integrations.files.options import Choice, Number, Option, Size, Words

_FORMAT = Choice("format", tuple(FORMATS))
_QUALITY = Number("quality", 1, 100)

OPTIONS: dict[str, tuple[Option, ...]] = {
    "image.thumbnail": (Number("size", 16, 4096, default=256), _FORMAT, _QUALITY),
    "image.compress": (Size("max_bytes", needed=True), Choice("format", ("jpeg", "webp", "avif"))),
    "image.convert": (Choice("format", tuple(FORMATS), needed=True), _QUALITY),
    "image.strip_metadata": (),
    "image.watermark": (
        Words("text", 200, needed=True),
        Choice("position", POSITIONS, default=POSITIONS[0]),
        Number("opacity", 1, 100, default=50),
        _FORMAT,
        _QUALITY,
    ),
}
