"""What is done to pictures, each in a child process: a file in, a file out, and what there is to say about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

from PIL import Image

from integrations.files.bad_file import BadFile
from integrations.files.images.frames import read_frames
from integrations.files.images.open import open_image
from integrations.files.images.save import QUALITY, Frames, ending, own_format, save
from integrations.files.images.watermark import stamp

# The least quality that still looks like the picture; below it rather fewer pixels.
_LEAST_QUALITY = 40
_SMALLER = 0.8  # of each side, once more and once more, until it fits
_LEAST_SIDE = 16


class Made(TypedDict):
    """path: of the new file. suffix: what is added to the name of the one it was made from."""

    path: str
    suffix: str
    ending: str
    width: int
    height: int
    notes: list[str]


def thumbnail(source: str, folder: str, max_pixels: int, options: dict[str, Any]) -> Made:
    """The longer side is at most `size`; never enlarged."""
    size = int(options.get("size", 256))
    notes: list[str] = []
    image = open_image(source, max_pixels)
    format = options.get("format") or own_format(image)
    if image.format in ("JPEG", "MPO"):
        image.draft(None, _twice(image.size, size))  # decoded at a fraction: still twice what is needed

    def shrink(frame: Image.Image) -> Image.Image:
        frame.thumbnail((size, size), Image.Resampling.LANCZOS, reducing_gap=3.0)
        return frame

    return _written(read_frames(image, format, notes, shrink), format, folder, f"-{size}", options, notes)


def _twice(whole: tuple[int, int], size: int) -> tuple[int, int]:
    """Twice the sides of a thumbnail. Both, because Pillow takes the fraction that leaves each of them long enough."""
    longer = max(whole)
    return -(-2 * size * whole[0] // longer), -(-2 * size * whole[1] // longer)


def convert(source: str, folder: str, max_pixels: int, options: dict[str, Any]) -> Made:
    notes: list[str] = []
    image = open_image(source, max_pixels)
    format = options["format"]
    return _written(read_frames(image, format, notes), format, folder, "", options, notes)


def strip_metadata(source: str, folder: str, max_pixels: int, options: dict[str, Any]) -> Made:
    """The same picture, turned upright, without what a camera or a program wrote beside it."""
    notes: list[str] = []
    image = open_image(source, max_pixels)
    format = own_format(image)
    options = {"quality": 95, **options} if format in QUALITY else options
    return _written(read_frames(image, format, notes), format, folder, "-clean", options, notes)


def watermark(source: str, folder: str, max_pixels: int, options: dict[str, Any]) -> Made:
    notes: list[str] = []
    image = open_image(source, max_pixels)
    format = options.get("format") or own_format(image)
    picture = read_frames(image, format, notes, lambda frame: stamp(frame, options))
    return _written(picture, format, folder, "-marked", options, notes)


def compress(source: str, folder: str, max_pixels: int, options: dict[str, Any]) -> Made:
    """At most `max_bytes`: first with less quality, then with fewer pixels. What is small enough keeps its quality."""
    target = int(options["max_bytes"])
    notes: list[str] = []
    image = open_image(source, max_pixels)
    format = options.get("format") or _lossy(image)
    picture = read_frames(image, format, notes)
    first_size = picture.size
    while True:
        made = _best(picture, format, folder, target, notes)
        if made is not None:
            if picture.size != first_size:
                made["notes"].append(f"made smaller: {picture.size[0]} × {picture.size[1]} pixels")
            return made
        size = tuple(max(1, round(side * _SMALLER)) for side in picture.size)
        if max(size) < _LEAST_SIDE:
            raise BadFile(f"It cannot be made as small as {target} bytes; allow more with max_bytes.")
        frames = [frame.resize((size[0], size[1]), Image.Resampling.LANCZOS) for frame in picture.frames]
        picture = Frames(frames, picture.durations, picture.loop)


def _best(picture: Frames, format: str, folder: str, target: int, notes: list[str]) -> Made | None:
    """With the best quality that fits; None where none does."""
    low, high, best = _LEAST_QUALITY, 95 if format in QUALITY else _LEAST_QUALITY, None
    while low <= high:
        quality = (low + high + 1) // 2
        said = list(notes)
        made = _written(picture, format, folder, "-small", {"quality": quality}, said)
        fits = Path(made["path"]).stat().st_size <= target
        if needless := best if fits else made:
            Path(needless["path"]).unlink()
        if fits:
            best, low = made, quality + 1
        else:
            high = quality - 1
    return best


def _lossy(image: Image.Image) -> str:
    """A format in which it can be made smaller by quality: its own, or WebP, which has transparency and frames."""
    own = own_format(image)
    return own if own in QUALITY else "webp"


def _written(picture: Frames, format: str, folder: str, suffix: str, options: dict[str, Any], notes: list[str]) -> Made:
    path = Path(folder) / f"{suffix or 'made'}-{options.get('quality') or 'q'}{ending(format)}"
    save(picture, format, path, options.get("quality"), notes)
    width, height = picture.size
    return {
        "path": str(path),
        "suffix": suffix,
        "ending": ending(format),
        "width": width,
        "height": height,
        "notes": list(dict.fromkeys(notes)),
    }


MAKERS: dict[str, Callable[[str, str, int, dict[str, Any]], Made]] = {
    "image.thumbnail": thumbnail,
    "image.compress": compress,
    "image.convert": convert,
    "image.strip_metadata": strip_metadata,
    "image.watermark": watermark,
}
