"""A picture from a file: judged by its content, measured before it is decoded, and never half of it."""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from integrations.files.bad_file import BadFile

FORMATS: tuple[str, ...] = (
    "JPEG",
    "PNG",
    "WEBP",
    "GIF",
    "AVIF",
    "TIFF",
    "BMP",
)  # JPEG brings the two pictures of an MPO
MAX_SIDE = 65_000  # what JPEG and WebP writers take, and far beyond any camera
MAX_FRAMES = 1_000  # an animation of a minute at 16 frames a second
Image.MAX_IMAGE_PIXELS = None  # our own limit is looked at before anything is decoded
Image.init()
with suppress(ImportError):
    from pillow_heif import register_heif_opener

    register_heif_opener()
    FORMATS = (*FORMATS, "HEIF")


def open_image(path: str, max_pixels: int) -> Image.Image:
    """Its header is read and measured, its pixels are not. max_pixels: of one frame; an animation may have ten times as
    many in all. Raises BadFile."""
    if Path(path).stat().st_size == 0:
        raise BadFile("The file is empty.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(path, formats=FORMATS)
    except UnidentifiedImageError as error:
        raise BadFile(_what_it_is(path)) from error
    except (OSError, SyntaxError, ValueError) as error:
        raise BadFile("The picture is damaged: its beginning cannot be read.") from error
    width, height = image.size
    if width > MAX_SIDE or height > MAX_SIDE:
        raise BadFile(f"The picture has {width} × {height} pixels; a side may have at most {MAX_SIDE}.")
    if width * height > max_pixels:
        raise BadFile(
            f"The picture has {width} × {height} pixels; at most {max_pixels} are allowed (BOARD_MAX_PIXELS)."
        )
    frames = frame_count(image)
    if frames > MAX_FRAMES or frames * width * height > 10 * max_pixels:
        raise BadFile(f"The picture has {frames} frames of {width} × {height} pixels, which is too much to work on.")
    return image


def load(image: Image.Image) -> None:
    """Decode it, or its present frame. Raises BadFile where it is cut short or broken."""
    try:
        image.load()
    except MemoryError:
        raise
    except Exception as error:  # decoders raise whatever they like
        raise BadFile("The picture is damaged: it cannot be read to its end.") from error


def frame_count(image: Image.Image) -> int:
    """Raises BadFile."""
    try:
        return int(getattr(image, "n_frames", 1))
    except Exception as error:
        raise BadFile("The picture is damaged: its frames cannot be counted.") from error


def is_animation(image: Image.Image) -> bool:
    """Frames that follow each other in time; the pages of a TIFF do not."""
    return image.format in ("GIF", "WEBP", "PNG", "AVIF") and frame_count(image) > 1


def _what_it_is(path: str) -> str:
    with Path(path).open("rb") as file:
        head = file.read(2048).lstrip().lower()
    if b"<svg" in head:
        return "It is an SVG drawing, which may carry scripts; only pictures made of pixels are worked on."
    if head.startswith((b"<!doctype html", b"<html")):
        return "It is a web page and no picture, whatever its name says."
    if head.startswith(b"%pdf"):
        return "It is a PDF document and no picture."
    if head[4:12] in (b"ftypheic", b"ftypheix", b"ftypmif1", b"ftypmsf1", b"ftyphevc"):
        return "It is a HEIC photo, which needs one more package: pip install 'ai-task-board[heic]'."
    return "It is no picture of a kind that is known here (JPEG, PNG, WebP, GIF, AVIF, TIFF, BMP, HEIC)."
