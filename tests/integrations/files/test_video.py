"""Films, made here by ffmpeg: into what browsers play, pictures out of them, and words about bad ones."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from integrations.files.bad_file import BadFile
from integrations.files.options import values
from integrations.files.pool import Pool, Turn
from integrations.files.video import ffmpeg
from integrations.files.video.make import MAKERS
from integrations.files.video.options import OPTIONS
from tests.integrations.files.test_handler import store
from tests.integrations.files.test_pool import told_pid, until_gone
from tests.rig.working import OpenWorking

try:
    FFMPEG = ffmpeg.find_ffmpeg()
except BadFile:
    FFMPEG = ""
with_ffmpeg = pytest.mark.skipif(not FFMPEG, reason="there is no ffmpeg here")
LIMIT = 100_000_000


def film(path: Path, *options: str, seconds: int = 2, size: str = "160x90", sound: bool = True) -> Path:
    """Moving colours, and a tone. options: of the output."""
    tone = ["-f", "lavfi", "-i", f"sine=duration={seconds}"] if sound else []
    picture = ["-f", "lavfi", "-i", f"testsrc=duration={seconds}:size={size}:rate=10"]
    subprocess.run([FFMPEG, "-v", "error", *picture, *tone, *options, str(path)], check=True)
    return path


def make(name: str, source: Path, folder: Path, limit: int = LIMIT, **options: Any) -> dict[str, Any]:
    return MAKERS[name](str(source), str(folder), limit, values(OPTIONS[name], options))


@with_ffmpeg
@pytest.mark.parametrize(("format", "codec"), [("mp4", "h264"), ("webm", "vp9")])
def test_a_film_for_browsers(format: str, codec: str, tmp_path: Path) -> None:
    made = make("video.transcode", film(tmp_path / "in.avi"), tmp_path, format=format, size=80)
    assert (made["width"], made["height"], made["ending"], made["notes"]) == (80, 46, f".{format}", [])
    assert made["seconds"] == pytest.approx(2, abs=0.3)
    said = subprocess.run([FFMPEG, "-i", made["path"]], capture_output=True, text=True, check=False).stderr
    assert f"Video: {codec}" in said
    assert "Audio: " in said
    assert sorted(it.name for it in tmp_path.iterdir()) == sorted(["in.avi", Path(made["path"]).name])


@with_ffmpeg
def test_never_enlarged_and_sound_may_be_left_out(tmp_path: Path) -> None:
    source = film(tmp_path / "in.mp4", "-metadata", "title=secret place")
    made = make("video.transcode", source, tmp_path, size=4000, audio="none")
    assert (made["width"], made["height"], made["notes"]) == (160, 90, ["without sound"])
    assert b"secret place" in source.read_bytes()
    assert b"secret place" not in Path(made["path"]).read_bytes()


@with_ffmpeg
def test_sides_that_are_odd_and_tracks_that_are_left_out(tmp_path: Path) -> None:
    source = film(tmp_path / "in.mkv", "-map", "0:v", "-map", "1:a", "-map", "1:a", size="161x91")
    made = make("video.transcode", source, tmp_path)
    assert (made["width"] % 2, made["height"] % 2) == (0, 0)
    assert made["notes"] == ["further tracks left out: 1"]


@with_ffmpeg
@pytest.mark.parametrize("format", ["jpeg", "png", "webp"])
def test_a_picture_of_a_film(format: str, tmp_path: Path) -> None:
    made = make("video.thumbnail", film(tmp_path / "in.mp4", sound=False), tmp_path, size=64, format=format)
    image = Image.open(made["path"])
    assert (image.format, image.size, made["notes"]) == (format.upper(), (64, 36), [])
    assert len(set(image.convert("RGB").resize((8, 1)).tobytes())) > 6  # the colours of the test picture


@with_ffmpeg
def test_a_film_that_is_shorter_shows_its_first_picture(tmp_path: Path) -> None:
    made = make("video.thumbnail", film(tmp_path / "in.mp4", seconds=1, sound=False), tmp_path, at=50)
    assert made["notes"] == ["the film has no picture at 50 s; its first one is shown"]


@with_ffmpeg
@pytest.mark.parametrize("name", MAKERS)
def test_what_is_no_film_says_so_and_nothing_is_made(name: str, tmp_path: Path) -> None:
    """B049, B053: also a play list, which would make it read other files."""
    whole = film(tmp_path / "whole.mp4").read_bytes()
    bad = {
        "empty": (b"", "empty"),
        "text": (b"no film at all", "no film"),
        "cut": (whole[: len(whole) // 2], "damaged"),
        "list.m3u8": (b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "no film"),
        "concat": (f"ffconcat version 1.0\nfile {tmp_path}/whole.mp4\n".encode(), "no film"),
    }
    for file, (data, word) in bad.items():
        (tmp_path / file).write_bytes(data)
        with pytest.raises(BadFile, match=word):
            make(name, tmp_path / file, tmp_path)
    subprocess.run(
        [FFMPEG, "-v", "error", "-f", "lavfi", "-i", "sine=duration=1", str(tmp_path / "tone.ogg")], check=True
    )
    with pytest.raises(BadFile, match="no pictures"):
        make(name, tmp_path / "tone.ogg", tmp_path)
    with pytest.raises(BadFile, match="160 × 90 pixels"):
        make(name, tmp_path / "whole.mp4", tmp_path, limit=160 * 90 - 1)
    assert {it.name for it in tmp_path.iterdir()} == {"whole.mp4", "tone.ogg", *bad}


@with_ffmpeg
def test_a_film_whose_end_is_missing_is_never_half_a_film(tmp_path: Path) -> None:
    """B049: its header stands in front and promises more than there is."""
    whole = film(tmp_path / "whole.mp4", "-movflags", "+faststart", "-g", "10", seconds=20).read_bytes()
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadFile, match="damaged"):
        make("video.transcode", tmp_path / "cut.mp4", tmp_path)


@pytest.mark.parametrize("name", MAKERS)
def test_without_ffmpeg_it_says_what_helps(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    (tmp_path / "in.mp4").write_bytes(b"film")
    with pytest.raises(BadFile, match=r"no ffmpeg.*apt install ffmpeg"):
        make(name, tmp_path / "in.mp4", tmp_path)


def hanging(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Any program in the place of ffmpeg: it says who it is, and hangs. The file in which it says so."""
    program = folder / "ffmpeg"
    told = folder / "pid"
    program.write_text(f'#!/bin/sh\necho $$ > "{told}.new"; mv "{told}.new" "{told}"\nexec sleep 600\n')
    program.chmod(0o755)
    (folder / "in.mp4").write_bytes(b"film")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return told


@pytest.mark.skipif(sys.platform != "linux", reason="the system tells children of their parent's death on Linux only")
def test_ffmpeg_dies_with_the_process_that_runs_it_even_by_sigkill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = hanging(tmp_path, monkeypatch)
    run = f"from integrations.files.video.ffmpeg import look; look({str(tmp_path / 'in.mp4')!r}, {str(tmp_path)!r})"
    parent = subprocess.Popen([sys.executable, "-c", run])
    try:
        pid = told_pid(told)
    finally:
        parent.kill()
        parent.wait()
    until_gone(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="the system tells children of their parent's death on Linux only")
async def test_work_that_is_cancelled_ends_its_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = hanging(tmp_path, monkeypatch)
    pool = Pool()
    try:
        running = asyncio.create_task(pool.run(Turn(1), 60.0, ffmpeg.look, str(tmp_path / "in.mp4"), str(tmp_path)))
        pid = await asyncio.to_thread(told_pid, told)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.to_thread(until_gone, pid)
    finally:
        pool.close()


@with_ffmpeg
def test_a_film_from_end_to_end(working_sqlite: OpenWorking, tmp_path: Path) -> None:
    board = working_sqlite()
    board.apply(types=[{"name": "trial", "handler": {"use": "video.transcode", "size": 80}}])
    board.submit(payload=store(board, film(tmp_path / "影片.avi")))
    board.wait("T-1", "done")
    [made] = board.data()["result"]["files"]
    assert (made["name"], made["type"], made["width"]) == ("影片-web.mp4", "video/mp4", 80)
