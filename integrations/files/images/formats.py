"""The formats in which pictures are written, and where a watermark stands: known without loading what draws them."""

from __future__ import annotations

# By the name that a type's `format` gives: Pillow's name, and the ending.
FORMATS: dict[str, tuple[str, str]] = {
    "jpeg": ("JPEG", ".jpg"),
    "png": ("PNG", ".png"),
    "webp": ("WEBP", ".webp"),
    "avif": ("AVIF", ".avif"),
    "gif": ("GIF", ".gif"),
}
POSITIONS = ("bottom_right", "bottom_left", "top_right", "top_left", "center")
