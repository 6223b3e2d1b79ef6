"""Pictures written: in one of the formats of the web, with nothing in them but pixels, whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from integrations.files.images.formats import FORMATS
from integrations.files.images.plain import flatten

QUALITY = {"jpeg": 85, "webp": 82, "avif": 65}  # where none is asked for; about the same to the eye
_BY_PILLOW = {pillow: name for name, (pillow, _) in FORMATS.items()} | {"MPO": "jpeg"}


@dataclass(slots=True)
class Frames:
    """A picture, or an animation: its frames, how many milliseconds each is shown, how often it runs (0: for ever)."""

    frames: list[Image.Image]
    durations: list[int] = field(default_factory=list)
    loop: int | None = None

    @property
    def size(self) -> tuple[int, int]:
        return self.frames[0].size


def own_format(image: Image.Image) -> str:
    """The format that a picture keeps; of formats that browsers do not show: JPEG, or PNG with transparency."""
    if image.format in _BY_PILLOW:
        return _BY_PILLOW[image.format]
    return "png" if image.mode in ("RGBA", "LA", "P", "PA", "1") else "jpeg"


def ending(format: str) -> str:
    return FORMATS[format][1]


def save(picture: Frames, format: str, path: Path, quality: int | None, notes: list[str]) -> None:
    """Write it. Only what the format cannot do without goes in beside the pixels."""
    first, *rest = picture.frames
    more: dict[str, Any] = {}
    if format in QUALITY:
        more["quality"] = quality or QUALITY[format]
    if format == "jpeg":
        first = flatten(first, notes)
        first = first if first.mode == "L" else first.convert("RGB")
        more |= {"progressive": True, "optimize": first.width * first.height < 16_000_000}
    elif format == "png":
        more["optimize"] = first.width * first.height < 1_000_000
    elif format == "webp":
        more["method"] = 4
    elif format == "avif":
        more["speed"] = 8
    if len(picture.frames) > 1:
        more |= {"save_all": True, "append_images": rest, "duration": picture.durations}
        if picture.loop is not None:
            more["loop"] = picture.loop
        if format == "gif":
            more |= {"disposal": 2, "optimize": False}
    first.save(path, FORMATS[format][0], **more)  # frames in plain form carry no metadata
