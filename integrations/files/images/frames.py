"""The frames of a picture in plain form, each changed in the same way."""

from __future__ import annotations

from collections.abc import Callable

from PIL import Image

from integrations.files.images.open import frame_count, is_animation
from integrations.files.images.plain import plain
from integrations.files.images.save import Frames

ANIMATED = frozenset({"gif", "webp", "png", "avif"})


def read_frames(
    image: Image.Image, format: str, notes: list[str], change: Callable[[Image.Image], Image.Image] = lambda it: it
) -> Frames:
    """format: what it is going to be saved as; one that holds no animation gets the first frame, and a word of it.

    change: done to each frame, upright and plain. Raises BadFile.
    """
    total = frame_count(image)
    if not is_animation(image) or format not in ANIMATED:
        if total > 1:
            said = "animation dropped" if is_animation(image) else "only the first page was used"
            notes.append(f"{said} ({total} {'frames' if is_animation(image) else 'pages'})")
        return Frames([change(plain(image, notes))])
    loop = image.info.get("loop")
    frames: list[Image.Image] = []
    durations: list[int] = []
    for number in range(total):
        image.seek(number)
        frames.append(change(plain(image, notes if number == 0 else [])))
        durations.append(int(image.info.get("duration") or 100))
    return Frames(frames, durations, int(loop) if isinstance(loop, int) else None)
