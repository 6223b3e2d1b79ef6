"""Pictures: what the field has taught (B041 to B053), on the very files, and on others of the same kinds."""

from __future__ import annotations

import io
import json
import resource
import struct
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageCms, ImageDraw

from integrations.files.bad_file import BadFile
from integrations.files.images import make as make_module
from integrations.files.images.frames import read_frames
from integrations.files.images.make import MAKERS
from integrations.files.images.save import Frames

CASES = Path(__file__).parents[2] / "data/cases/images"
FACTS = json.loads((Path(__file__).parents[2] / "data/cases/images.json").read_text(encoding="utf-8"))
LIMIT = 100_000_000
OPTIONS: dict[str, dict[str, Any]] = {
    "image.thumbnail": {"size": 48},
    "image.compress": {"max_bytes": 20_000},
    "image.convert": {"format": "png"},
    "image.strip_metadata": {},
    "image.watermark": {"text": "Ours"},
}
SAME = {name: {"format": "jpeg"} for name in OPTIONS}


def make(name: str, source: Path | str, folder: Path, **options: Any) -> tuple[Image.Image, dict[str, Any]]:
    path = CASES / source if isinstance(source, str) else source
    made = MAKERS[name](str(path), str(folder), LIMIT, OPTIONS[name] | options)
    image = Image.open(made["path"])
    assert image.size == (made["width"], made["height"])
    return image, dict(made)


def near(image: Image.Image, at: tuple[int, int], colour: tuple[int, ...], within: int = 40) -> bool:
    found = image.convert("RGB").getpixel(at)
    assert isinstance(found, tuple)
    return all(abs(a - b) <= within for a, b in zip(found, colour, strict=False))


def written(image: Image.Image, path: Path, **more: Any) -> Path:
    image.save(path, **more)
    return path


# -- what is private, and which way is up -------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIONS)
def test_upright_and_without_place_or_owner(name: str, tmp_path: Path) -> None:
    """B041, and a second pass over the output changes nothing."""
    image, made = make(name, "d_exif6_gps.jpg", tmp_path)
    again = Path(made["path"]).rename(tmp_path / f"first{made['ending']}")
    facts = FACTS["images/d_exif6_gps.jpg"]
    width, height = facts["upright_size"]
    for it in (image, make(name, again, tmp_path)[0]):
        it.load()
        assert it.size[0] < it.size[1]
        assert it.size[0] / it.size[1] == pytest.approx(width / height, abs=0.02)
        right, bottom = it.size[0] - 4, it.size[1] - 4
        corners = [(3, 3), (right, 3), (3, bottom), (right, bottom)]
        for place, colour in zip(corners, facts["upright_corners_tl_tr_bl_br"], strict=True):
            if not (name == "image.watermark" and place == corners[3]):
                assert near(it, place, colour), (name, place)
        assert not dict(it.getexif())
        raw = Path(it.filename).read_bytes()  # type: ignore[attr-defined]
        for secret in (b"GPS", b"Exif", b"http://ns.adobe.com/xap", b"Photoshop 3.0", b"eXIf", b"XML:com.adobe.xmp"):
            assert secret not in raw


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_every_orientation_of_every_format(orientation: int, kind: str, tmp_path: Path) -> None:
    upright = Image.new("RGB", (60, 40), "white")
    ImageDraw.Draw(upright).rectangle((0, 0, 20, 20), fill=(200, 0, 0))  # top left
    back = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # Pillow's transposition that undoes what the tag asks for
    stored = upright.transpose(Image.Transpose(back[orientation])) if orientation > 1 else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x013B] = "Somebody"
    source = written(stored, tmp_path / f"in.{kind.lower()}", format=kind, exif=exif)
    image, _ = make("image.convert", source, tmp_path)
    assert image.size == (60, 40)
    assert near(image, (8, 8), (200, 0, 0))
    assert near(image, (50, 30), (255, 255, 255))
    assert b"Somebody" not in Path(image.filename).read_bytes()  # type: ignore[attr-defined]


# -- colours ------------------------------------------------------------------------------------------------------


def test_sixteen_bits_are_scaled_and_always_rise(tmp_path: Path) -> None:
    """B043."""
    image, made = make("image.thumbnail", "d_gray16.png", tmp_path, format="jpeg", size=256)
    row = [image.convert("L").getpixel((x, image.height // 2)) for x in range(image.width)]
    assert row[0] <= 3
    assert row[image.width // 2] == pytest.approx(128, abs=4)
    assert row[-1] >= 252
    assert all(b >= a - 2 for a, b in pairwise(row))
    assert "16 bits a channel became 8" in made["notes"]


def test_sixteen_bits_of_a_dark_picture_stay_dark(tmp_path: Path) -> None:
    source = written(Image.new("I;16", (8, 8), 200), tmp_path / "dark.png")
    image, _ = make("image.convert", source, tmp_path, format="jpeg")
    assert near(image, (4, 4), (1, 1, 1), within=4)


def test_cmyk_looks_as_it_is_called(tmp_path: Path) -> None:
    """B043."""
    names = {
        "white": (255, 255, 255),
        "red": (255, 0, 0),
        "green": (0, 255, 0),
        "blue": (0, 0, 255),
        "black": (0, 0, 0),
    }
    facts = FACTS["images/d_cmyk.jpg"]
    image, _ = make("image.thumbnail", "d_cmyk.jpg", tmp_path, size=160)
    assert image.mode == "RGB"
    for number, name in enumerate(facts["patches_left_to_right"]):
        assert near(image, (number * facts["patch_width"] + 16, 16), names[name], within=90), name


def test_a_profile_is_used_and_then_left_out(tmp_path: Path) -> None:
    """A profile that turns colours about (here: its red is our blue) would be lost without a word otherwise."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    red, blue = profile.index(b"rXYZ"), profile.index(b"bXYZ")
    profile[red : red + 4], profile[blue : blue + 4] = b"bXYZ", b"rXYZ"
    profile = bytearray(bytes(profile).replace("sRGB".encode("utf-16-be"), "Mine".encode("utf-16-be")))
    source = written(Image.new("RGB", (20, 20), (250, 0, 0)), tmp_path / "p.png", icc_profile=bytes(profile))
    image, made = make("image.convert", source, tmp_path, format="png")
    assert "icc_profile" not in image.info
    assert near(image, (10, 10), (0, 0, 250))
    assert "colours were brought into sRGB" in made["notes"]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16", "CMYK"])
@pytest.mark.parametrize("name", OPTIONS)
def test_every_mode_becomes_a_jpeg(mode: str, name: str, tmp_path: Path) -> None:
    kind = "TIFF" if mode in ("CMYK",) else "PNG"
    source = written(Image.new(mode, (64, 48)), tmp_path / f"in.{kind.lower()}", format=kind)
    more = {} if name in ("image.strip_metadata",) else {"format": "jpeg"}
    image, _ = make(name, source, tmp_path, **more)
    image.load()
    assert name == "image.strip_metadata" or image.format == "JPEG"


@pytest.mark.parametrize("format", ["jpeg", "webp", "png", "avif"])
def test_transparency_is_kept_or_becomes_white(format: str, tmp_path: Path) -> None:
    """B045."""
    image, made = make("image.convert", "d_rgba.png", tmp_path, format=format)
    if format == "jpeg":
        assert near(image, (0, 0), (255, 255, 255), within=3)
        assert "transparency became white" in made["notes"]
    else:
        assert image.convert("RGBA").getpixel((0, 0))[3] == 0  # type: ignore[index]
        assert made["notes"] == []


def test_a_palette_with_a_transparent_colour(tmp_path: Path) -> None:
    palette = Image.new("P", (16, 16), 0)
    palette.putpalette([255, 0, 0, 0, 255, 0])
    source = written(palette, tmp_path / "p.gif", transparency=0)
    image, _ = make("image.convert", source, tmp_path, format="jpeg")
    assert near(image, (4, 4), (255, 255, 255), within=3)
    image, _ = make("image.convert", source, tmp_path, format="webp")
    assert image.convert("RGBA").getpixel((4, 4))[3] == 0  # type: ignore[index]


# -- frames -------------------------------------------------------------------------------------------------------


def timing(path: str) -> tuple[int, list[int], Any]:
    image = Image.open(path)
    durations = []
    for number in range(image.n_frames):  # type: ignore[attr-defined]
        image.seek(number)
        image.load()
        durations.append(image.info["duration"])
    return len(durations), durations, image.info.get("loop")


@pytest.mark.parametrize("file", ["d_anim.webp", "d_anim.gif"])
@pytest.mark.parametrize("name", ["image.thumbnail", "image.strip_metadata", "image.watermark"])
def test_an_animation_keeps_its_frames_durations_and_loop(file: str, name: str, tmp_path: Path) -> None:
    """B047."""
    facts = FACTS[f"images/{file}"]
    _, made = make(name, file, tmp_path)
    assert timing(made["path"]) == (facts["frames"], facts["duration_ms"], facts["loop"])
    assert made["notes"] == []


@pytest.mark.parametrize("file", ["d_anim.webp", "d_anim.gif"])
def test_an_animation_in_a_still_format_says_what_is_lost(file: str, tmp_path: Path) -> None:
    """B047."""
    image, made = make("image.convert", file, tmp_path, format="jpeg")
    assert getattr(image, "n_frames", 1) == 1
    assert [note for note in made["notes"] if note.startswith("animation dropped")]


def test_pages_of_a_tiff_are_not_lost_without_a_word(tmp_path: Path) -> None:
    pages = [Image.new("RGB", (20, 20), colour) for colour in ("red", "green", "blue")]
    source = written(pages[0], tmp_path / "pages.tiff", save_all=True, append_images=pages[1:])
    image, made = make("image.convert", source, tmp_path, format="jpeg")
    assert near(image, (10, 10), (255, 0, 0))
    assert "only the first page was used (3 pages)" in made["notes"]


# -- files that are damaged, or made to do harm --------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize(
    ("file", "word"),
    [("d_trunc.jpg", "damaged"), ("d_zero.png", "empty"), ("d_html_named.png", "web page"), ("d_script.svg", "SVG")],
)
def test_what_cannot_be_worked_on_is_named_and_nothing_is_made(name: str, file: str, word: str, tmp_path: Path) -> None:
    """B049, B053."""
    with pytest.raises(BadFile, match=word):
        make(name, file, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "TIFF", "AVIF"])
@pytest.mark.parametrize("share", [0.4, 0.9])
def test_a_picture_that_was_cut_is_never_half_a_picture(kind: str, share: float, tmp_path: Path) -> None:
    whole = io.BytesIO()
    noise = Image.effect_noise((200, 200), 80).convert("RGB")
    noise.save(whole, kind)
    source = tmp_path / "cut"
    source.write_bytes(whole.getvalue()[: int(len(whole.getvalue()) * share)])
    with pytest.raises(BadFile):
        make("image.thumbnail", source, tmp_path)


@pytest.mark.parametrize("file", ["d_bomb_13000.png", "d_bomb_declared_50000.png"])
def test_a_bomb_is_refused_from_its_header(file: str, tmp_path: Path) -> None:
    """B051: memory grows by less than 100 MB, and the message names the limit."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadFile, match="BOARD_MAX_PIXELS"):
        make("image.thumbnail", file, tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_a_side_too_long_is_refused(tmp_path: Path) -> None:
    header = struct.pack(">IIBBBBB", 65_001, 1, 8, 0, 0, 0, 0)
    chunk = b"IHDR" + header
    source = tmp_path / "long.png"
    begin = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    source.write_bytes(begin + struct.pack(">I", 100) + b"IDAT" + bytes(100))
    with pytest.raises(BadFile, match="65000"):
        make("image.thumbnail", source, tmp_path)


def test_an_animation_of_too_many_pixels_is_refused(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (100, 100), (number * 4, 0, 0)) for number in range(60)]
    source = written(frames[0], tmp_path / "long.gif", save_all=True, append_images=frames[1:])
    with pytest.raises(BadFile, match="frames"):
        MAKERS["image.thumbnail"](str(source), str(tmp_path), 10_000, {"size": 48})


def test_content_counts_and_not_the_name(tmp_path: Path) -> None:
    """B053: a JPEG called .heic is worked on and gets the right ending."""
    image, made = make("image.thumbnail", "d_jpeg_named.heic", tmp_path)
    assert (image.format, made["ending"]) == ("JPEG", ".jpg")


def test_a_photo_of_a_phone(tmp_path: Path) -> None:
    pillow_heif = pytest.importorskip("pillow_heif")
    photo = Image.new("RGB", (80, 60), (10, 120, 200))
    pillow_heif.from_pillow(photo).save(tmp_path / "p.heic")
    image, made = make("image.thumbnail", tmp_path / "p.heic", tmp_path)
    assert (image.format, made["ending"]) == ("JPEG", ".jpg")
    assert near(image, (20, 20), (10, 120, 200))


# -- sizes --------------------------------------------------------------------------------------------------------


def test_never_enlarged(tmp_path: Path) -> None:
    image, _ = make("image.thumbnail", "d_rgba.png", tmp_path, size=4000)
    assert image.size == Image.open(CASES / "d_rgba.png").size


def test_the_longer_side_is_what_was_asked(tmp_path: Path) -> None:
    source = written(Image.new("RGB", (3000, 1000), "red"), tmp_path / "wide.jpg")
    assert make("image.thumbnail", source, tmp_path, size=256)[0].size == (256, 85)


@pytest.mark.parametrize("target", [60_000, 8_000, 1_500])
def test_compressed_to_the_size_that_was_asked(target: int, tmp_path: Path) -> None:
    source = written(Image.effect_noise((600, 400), 60).convert("RGB"), tmp_path / "noise.jpg", quality=98)
    _, made = make("image.compress", source, tmp_path, max_bytes=target)
    assert Path(made["path"]).stat().st_size <= target
    smaller = [note for note in made["notes"] if note.startswith("made smaller")]
    assert bool(smaller) == ((made["width"], made["height"]) != (600, 400))
    assert [path for path in tmp_path.iterdir() if path != source] == [Path(made["path"])]


def test_what_cannot_be_that_small_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="max_bytes"):
        make("image.compress", "d_exif6_gps.jpg", tmp_path, max_bytes=10)


def test_a_watermark_is_where_it_was_asked(tmp_path: Path) -> None:
    source = written(Image.new("RGB", (400, 300), (0, 90, 0)), tmp_path / "green.png")
    for position, box in {"top_left": (0, 0, 200, 150), "bottom_right": (200, 150, 400, 300)}.items():
        image, _ = make("image.watermark", source, tmp_path, position=position, opacity=100, text="© Ours 2026")
        plain = Image.new("RGB", (400, 300), (0, 90, 0))
        for x in range(0, 400, 2):
            for y in range(0, 300, 2):
                inside = box[0] <= x < box[2] and box[1] <= y < box[3]
                assert inside or image.getpixel((x, y)) == plain.getpixel((x, y))
        assert image.tobytes() != plain.tobytes()


@pytest.mark.parametrize("size", [(1200, 800), (800, 1200)])
def test_a_thumbnail_is_decoded_at_the_smallest_fraction_that_does(
    size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shorter side does not keep it larger: to decode a photo takes most of the time."""
    decoded: list[tuple[int, int]] = []

    def note(image: Image.Image, *given: Any) -> Frames:
        decoded.append(image.size)
        return read_frames(image, *given)

    monkeypatch.setattr(make_module, "read_frames", note)
    Image.new("RGB", size, "teal").save(tmp_path / "in.jpg")
    made = MAKERS["image.thumbnail"](str(tmp_path / "in.jpg"), str(tmp_path), LIMIT, {"size": 128})
    assert decoded == [(size[0] // 4, size[1] // 4)]
    assert max(made["width"], made["height"]) == 128
