"""A text laid over a picture."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from integrations.files.bad_file import BadFile
from integrations.files.images.formats import POSITIONS

_SHARE = 1 / 20  # of the shorter side: the height of the letters, unless the text would be wider than the picture
_LEAST = 8  # pixels; smaller letters cannot be read
# Fonts with Chinese characters where systems keep them; Pillow's own has Latin letters only.
_FONTS = ("NotoSansCJK*.ttc", "NotoSerifCJK*.ttc", "SourceHanSans*.otf", "wqy-*.ttc", "PingFang.ttc", "msyh.ttc")
_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "/System/Library/Fonts", "/Library/Fonts")


def stamp(frame: Image.Image, options: dict[str, Any]) -> Image.Image:
    """options: text, position (one of POSITIONS), opacity (1 to 100, percent)."""
    text = str(options["text"])
    width, height = frame.size
    size = max(_LEAST, round(min(width, height) * _SHARE))
    font = _font(size, text)
    layer = Image.new("RGBA", frame.size, (0, 0, 0, 0))
    draw = ImageDraw.Draw(layer)
    box = draw.textbbox((0, 0), text, font=font)
    if box[2] - box[0] > width * 0.9:
        font = _font(max(_LEAST, int(size * width * 0.9 / (box[2] - box[0]))), text)
        box = draw.textbbox((0, 0), text, font=font)
    wide, high = round(box[2] - box[0]), round(box[3] - box[1])
    left, top = _place(str(options.get("position", POSITIONS[0])), frame.size, (wide, high), size)
    strength = round(255 * int(options.get("opacity", 50)) / 100)
    white, black = (255, 255, 255, strength), (0, 0, 0, strength)
    at = (left - box[0], top - box[1])
    draw.text(at, text, font=font, fill=white, stroke_width=max(1, size // 16), stroke_fill=black)
    marked = Image.alpha_composite(frame.convert("RGBA"), layer)
    return marked if frame.mode in ("RGBA", "LA") else marked.convert("RGB")


def _place(position: str, frame: tuple[int, int], text: tuple[int, int], margin: int) -> tuple[int, int]:
    if position == "center":
        return (frame[0] - text[0]) // 2, (frame[1] - text[1]) // 2
    vertical, horizontal = position.split("_")
    left = margin if horizontal == "left" else frame[0] - text[0] - margin
    top = margin if vertical == "top" else frame[1] - text[1] - margin
    return max(0, left), max(0, top)


@lru_cache(maxsize=16)
def _font(size: int, text: str) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    if text.isascii():
        return ImageFont.load_default(size)
    path = _cjk_font()
    if path is None:
        raise BadFile("This machine has no font for the text; install one, such as the package fonts-noto-cjk.")
    return ImageFont.truetype(path, size)


@lru_cache(maxsize=1)
def _cjk_font() -> str | None:
    for pattern in _FONTS:
        for folder in _FOLDERS:
            for path in sorted(Path(folder).rglob(pattern)):
                return str(path)
    return None
