"""What is done to films, each in a child process: a file in, a file out, and what there is to say about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from integrations.files.bad_file import BadFile
from integrations.files.video.ffmpeg import THREADS, Film, convert, look

# What browsers play everywhere (MP4), and without patents (WebM). crf: about the same to the eye.
FORMATS: dict[str, dict[str, Any]] = {
    "mp4": {
        "video": ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p"],
        "audio": ["-c:a", "aac", "-b:a", "128k", "-ac", "2"],
        "more": ["-movflags", "+faststart"],
        "crf": 23,
    },
    "webm": {
        "video": ["-c:v", "libvpx-vp9", "-b:v", "0", "-deadline", "realtime", "-cpu-used", "6", "-pix_fmt", "yuv420p"],
        "audio": ["-c:a", "libopus", "-b:a", "96k", "-ac", "2"],
        "more": [],
        "crf": 33,
    },
}
_SQUARE = "scale=trunc(iw*sar):ih,setsar=1"  # pixels that are not square are made so
_SHORTER = 0.9  # of the seconds that the file promises: less means that its end is missing
_LEAST_MISSING = 1.0  # seconds; lengths are told roughly


def transcode(source: str, folder: str, max_pixels: int, options: dict[str, Any]) -> dict[str, Any]:
    """The same film for browsers: its first picture track and its first sound track, without what is written beside."""
    film = _looked(source, folder, max_pixels)
    format = str(options["format"])
    how = FORMATS[format]
    sound = options["audio"] == "keep" and "Audio" in film.streams
    path = Path(folder) / f"made.{format}"
    convert(
        source,
        [],
        [
            *("-map", "0:v:0"),
            *(["-map", "0:a:0", *how["audio"]] if sound else ["-an"]),
            *("-map_metadata", "-1", "-map_chapters", "-1", "-sn", "-dn"),
            *("-vf", f"{_SQUARE},{_scaled(options.get('size'), film, 2)}"),
            *(*how["video"], "-crf", str(options.get("crf") or how["crf"]), "-threads", str(THREADS), *how["more"]),
            *("-f", format, f"file:{path}"),
        ],
        folder,
        max_pixels,
    )
    made = look(str(path), folder)
    missing = film.seconds - made.seconds
    if made.seconds < film.seconds * _SHORTER and missing > _LEAST_MISSING:
        raise BadFile(f"The film is damaged: only {made.seconds:.0f} of its {film.seconds:.0f} s can be read.")
    facts = {"width": made.width, "height": made.height, "seconds": made.seconds}
    return {"path": str(path), "suffix": "-web", "ending": f".{format}", **facts, "notes": _left_out(film, sound)}


def thumbnail(source: str, folder: str, max_pixels: int, options: dict[str, Any]) -> dict[str, Any]:
    """The picture at so many seconds; of a shorter film the first, and a word of it."""
    from integrations.files.images.frames import read_frames
    from integrations.files.images.open import open_image
    from integrations.files.images.save import ending, save

    film = _looked(source, folder, max_pixels)
    size, at, format = int(options["size"]), int(options["at"]), str(options["format"])
    notes: list[str] = []
    still = Path(folder) / "still.png"
    for second in dict.fromkeys((at, 0)):
        after = ["-frames:v", "1", "-an", "-vf", f"{_SQUARE},{_scaled(size, film, 1)}"]
        convert(
            source, ["-ss", str(second)], [*after, "-f", "image2", "-update", "1", f"file:{still}"], folder, max_pixels
        )
        if still.exists():
            break
        notes.append(f"the film has no picture at {second} s; its first one is shown")
    else:
        raise BadFile("The film is damaged: no picture of it can be read.")
    picture = read_frames(open_image(str(still), max_pixels), format, notes)
    path = Path(folder) / f"made{ending(format)}"
    save(picture, format, path, options.get("quality"), notes)
    facts = {"width": picture.size[0], "height": picture.size[1], "notes": notes}
    return {"path": str(path), "suffix": f"-{size}", "ending": ending(format), **facts}


def _looked(source: str, folder: str, max_pixels: int) -> Film:
    film = look(source, folder)
    if film.width * film.height > max_pixels:
        raise BadFile(f"The film has {film.width} × {film.height} pixels; at most {max_pixels} are allowed.")
    return film


def _scaled(size: int | None, film: Film, even: int) -> str:
    """A filter: the longer side at most `size`, never enlarged. even: 2 where the encoder needs even sides."""
    most = size or 2 * max(film.width, film.height)
    return f"scale=w='min(iw,{most})':h='min(ih,{most})':force_original_aspect_ratio=decrease:force_divisible_by={even}"


def _left_out(film: Film, sound: bool) -> list[str]:
    notes = []
    kept = 1 + sound
    if not sound and "Audio" in film.streams:
        notes.append("without sound")
    if (others := len(film.streams) - kept - (0 if sound else film.streams.count("Audio"))) > 0:
        notes.append(f"further tracks left out: {others}")
    return notes


MAKERS: dict[str, Callable[[str, str, int, dict[str, Any]], dict[str, Any]]] = {
    "video.transcode": transcode,
    "video.thumbnail": thumbnail,
}
