"""Pictures in a plain form: upright, eight bits a channel, in sRGB; and a word about everything that is lost by it."""

from __future__ import annotations

import io
from contextlib import suppress

from PIL import Image, ImageCms, ImageOps

from integrations.files.images.open import load

_DEEP = "16 bits a channel became 8"
_SRGB = ImageCms.createProfile("sRGB")


def plain(image: Image.Image, notes: list[str]) -> Image.Image:
    """The present frame as RGB or RGBA, L or LA; nothing but its pixels is left of it. Raises BadFile."""
    if _is_deep(image):
        notes.append(_DEEP)
    load(image)
    profile = image.info.get("icc_profile")
    upright = ImageOps.exif_transpose(image)
    made = _in_srgb(_eight_bits(upright, notes), profile, notes)
    clean = Image.new(made.mode, made.size)
    clean.paste(made)
    return clean


def has_alpha(image: Image.Image) -> bool:
    return image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info


def flatten(image: Image.Image, notes: list[str]) -> Image.Image:
    """Without transparency, on white: for formats that have none."""
    if not has_alpha(image):
        return image
    if image.getchannel("A").getextrema() != (255, 255):
        notes.append("transparency became white")
    ground = Image.new("RGBA", image.size, "white")
    ground.alpha_composite(image.convert("RGBA"))
    return ground.convert("RGB")


def _is_deep(image: Image.Image) -> bool:
    """Colours of 16 bits, of which the decoder keeps eight by itself."""
    return any(";16" in str(tile[3]) for tile in getattr(image, "tile", ()))


def _eight_bits(image: Image.Image, notes: list[str]) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        return _grey(image, notes)
    if image.mode == "1":
        return image.convert("L")
    if image.mode in ("P", "PA") or "transparency" in image.info:
        return image.convert("RGBA" if has_alpha(image) else "RGB")
    return image


def _grey(image: Image.Image, notes: list[str]) -> Image.Image:
    """Sixteen bits are scaled, not cut off: 0 stays black and 65535 white."""
    if _DEEP not in notes:
        notes.append(_DEEP)
    numbers = image.convert("F")
    return numbers.point(lambda value: value * (255 / _white(image, numbers)) + 0).convert("L")


def _white(image: Image.Image, numbers: Image.Image) -> float:
    """The number that stands for white: that of the kind of picture, and where it names none, by what is in it."""
    if image.mode.startswith("I;16"):
        return 65535.0
    brightest = float(numbers.getextrema()[1])  # type: ignore[arg-type]
    if image.mode == "F":
        return max(brightest, 1.0)
    return 255.0 if brightest <= 255 else max(brightest, 65535.0)


def _in_srgb(image: Image.Image, profile: bytes | None, notes: list[str]) -> Image.Image:
    """CMYK and other colours as screens show them; by the picture's own profile where it has one."""
    target = "RGBA" if image.mode in ("RGBA", "RGBa") else "LA" if image.mode in ("LA", "La") else "RGB"
    target = "L" if image.mode == "L" else target
    if profile and image.mode in ("RGB", "RGBA", "CMYK", "LAB"):
        with suppress(ImageCms.PyCMSError, OSError, ValueError):
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            if ImageCms.getProfileDescription(source).strip().lower().startswith("srgb"):
                return image.convert(target)
            alpha = image.getchannel("A") if image.mode == "RGBA" else None
            colours = image.convert("RGB") if alpha is not None else image
            made = ImageCms.profileToProfile(colours, source, _SRGB, outputMode="RGB")
            if made is not None:
                notes.append("colours were brought into sRGB")
                if alpha is not None:
                    made.putalpha(alpha)
                return made
    if image.mode in ("CMYK", "YCCK", "LAB"):
        notes.append(f"{image.mode} became RGB")
    return image.convert(target) if image.mode != target else image
