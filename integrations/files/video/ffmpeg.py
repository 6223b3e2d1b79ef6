"""ffmpeg as a child of the child that works on a file: nice, bounded like it, and gone with it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from integrations.files.bad_file import BadFile
from integrations.files.child import die_with

THREADS = 2  # a film may run beside others; more threads gain little on the machines that boards run on
# Containers that hold a film in themselves. Play lists and the like name other files and addresses, and are left out.
_CONTAINERS = "mov,mp4,matroska,webm,avi,mpegts,mpeg,flv,asf,ogg,gif,mxf"
_SAID = 200_000  # bytes of its messages that are looked at, from the end
_DURATION = re.compile(r"Duration: (\d+):(\d\d):(\d\d(?:\.\d+)?)")
_STREAM = re.compile(r"^\s*Stream #0:\d+.*?: (Video|Audio|Subtitle|Data|Attachment): (.*)$", re.MULTILINE)
_SIZE = re.compile(r"\b(\d{1,5})x(\d{1,5})\b")
NONE = (
    "This machine has no ffmpeg, which works on films. Install it on the worker (apt install ffmpeg), or the package "
    "pip install 'ai-task-board[video]'."
)


@dataclass(frozen=True, slots=True)
class Film:
    """seconds: 0 where the file does not say. streams: Video, Audio and so on, in their order."""

    seconds: float
    width: int
    height: int
    streams: tuple[str, ...]


def find_ffmpeg() -> str:
    """From PATH, or from the optional package. Raises BadFile."""
    if (found := shutil.which("ffmpeg")) is not None:
        return found
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return str(get_ffmpeg_exe())
    except (ImportError, RuntimeError) as error:
        raise BadFile(NONE) from error


def look(path: str, folder: str) -> Film:
    """What a film is, by its header. Raises BadFile."""
    with Path(path).open("rb") as file:
        if not file.read(1):
            raise BadFile("The file is empty.")
    said = _run([*_input(path, [])], folder)[1]
    kinds = tuple(kind for kind, _ in _STREAM.findall(said))
    if not kinds:
        raise BadFile("It is no film of a kind that is known here, or it is damaged: its beginning cannot be read.")
    video = next((rest for kind, rest in _STREAM.findall(said) if kind == "Video"), None)
    size = _SIZE.search(video or "")
    if size is None:
        raise BadFile("There is no film in it: it has no pictures.")
    found = _DURATION.search(said)
    seconds = int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3]) if found else 0.0
    return Film(seconds, int(size[1]), int(size[2]), kinds)


def convert(path: str, before: list[str], after: list[str], folder: str, max_pixels: int) -> None:
    """before: options of the input; after: of the output, its path last. Raises BadFile."""
    code, said = _run([*_input(path, ["-max_pixels", str(max_pixels), *before]), *after], folder)
    if code == 0:
        return
    if "Unknown encoder" in said:
        raise BadFile("The ffmpeg of this machine cannot write this format. Install a full one, or ask for another.")
    raise BadFile("The film is damaged: it cannot be read to its end.")


def _input(path: str, options: list[str]) -> list[str]:
    # Only files, and never a file that the content names.
    return ["-protocol_whitelist", "file", "-format_whitelist", _CONTAINERS, *options, "-i", f"file:{path}"]


def _run(arguments: list[str], folder: str) -> tuple[int, str]:
    """Its exit code, and what it said."""
    messages = Path(folder) / "messages"
    try:
        with messages.open("wb") as said:
            code = subprocess.run(  # noqa: S603 - no shell, and paths are ours
                [find_ffmpeg(), "-hide_banner", "-nostdin", "-nostats", "-y", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                check=False,
                # It would write on beside the retry otherwise: this process may be killed at any moment.
                preexec_fn=partial(die_with, os.getpid()),
            ).returncode
        return code, messages.read_bytes()[-_SAID:].decode(errors="replace")
    finally:
        messages.unlink(missing_ok=True)
