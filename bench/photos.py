"""What the measurements of work on files work on: photos of a camera's size, each another one, and a film."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageFilter

SIZE = (3000, 2000)  # pixels: six million, as phones save them


def photos(folder: Path, count: int, size: tuple[int, int] = SIZE) -> list[Path]:
    """So many JPEGs: soft shapes with the noise of a sensor, which packs about as well as a photo."""
    width, height = size
    shapes = Image.effect_noise((width // 100 + 2, height // 100 + 2), 90).resize(size, Image.Resampling.BICUBIC)
    grain = Image.effect_noise(size, 12).filter(ImageFilter.BoxBlur(1))
    whole = Image.merge("RGB", (shapes, Image.blend(shapes, grain, 0.3), grain))
    made = []
    for number in range(count):
        path = folder / f"photo-{number}.jpg"
        turned = whole.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if number % 2 else whole
        turned.paste((number % 256, 80, 160), (number, number, number + width // 8, number + height // 8))
        turned.save(path, quality=88)
        made.append(path)
    return made


def convert() -> str | None:
    """ImageMagick's `convert`, where there is one. Other programs have that name too."""
    for name in ("magick", "convert"):
        if (found := shutil.which(name)) is not None:
            said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stdout
            if said.startswith("Version: ImageMagick"):
                return found
    return None


def film(path: Path, ffmpeg: str, seconds: int) -> Path:
    """Moving colours of 1280 × 720 pixels, which take about a third of their time to be packed anew on one core."""
    source = ["-f", "lavfi", "-i", f"testsrc2=duration={seconds}:size=1280x720:rate=30"]
    quick: Sequence[str] = ["-c:v", "mpeg4", "-q:v", "5"]
    subprocess.run([ffmpeg, "-v", "error", "-nostdin", *source, *quick, str(path)], check=True)
    return path
