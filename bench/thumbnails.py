"""Thumbnails per second: of the board with one file slot and with two, and of what one would use without it."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from PIL import Image

from bench.boards import MeasuredBoard, measured
from bench.photos import convert
from bench.report import Figures, Goal, Report, Rounds
from bench.stand import Stand
from integrations.files import child
from integrations.files.pool import Pool, Turn

LOOP, MAGICK, VIPS = "a loop with Pillow", "ImageMagick", "pyvips"
SLOTS = {1: "one slot", 2: "two slots"}
SIDE = 256  # pixels
OVERHEAD = 1.15  # a task may take so many times as long as the same work in a loop
SPEED_UP = 1.7  # of two slots on two cores
MOST_PIXELS = 100_000_000
STARTS = 3  # of a child


def speed(stand: Stand, report: Report, photos: Sequence[Path], rounds: int, slots: Sequence[int]) -> None:
    """Adds rows and goals: photos/s and milliseconds of a photo. slots: of SLOTS, 1 among them."""
    others: dict[str, Callable[[], Figures]] = {LOOP: lambda: _timed(photos, _by_pillow)}
    if (program := convert()) is not None:
        others[MAGICK] = lambda: _timed(photos, lambda source, made: _by_magick(program, source, made))
    else:
        report.remarks.append("ImageMagick's convert is not on PATH: not measured.")
    try:
        import pyvips  # noqa: F401
    except (ImportError, OSError):
        report.remarks.append("pyvips is not installed: not measured.")
    else:
        others[VIPS] = lambda: _timed(photos, _by_vips)
    mine = {SLOTS[number]: partial(_by_board, stand, photos, number) for number in slots}
    found = Rounds(mine | others, rounds)
    found.into(report)
    report.rows["a child, cold"], report.rows["a child, warm"] = _starts(photos[0])
    slower = found.ratio(LOOP, SLOTS[1], "photos/s")
    report.goals.append(Goal("time of a photo at one slot, to a loop with Pillow", slower, OVERHEAD, at_least=False))
    if 2 in slots:
        report.goals.append(Goal("two slots, to one", found.ratio(SLOTS[2], SLOTS[1], "photos/s"), SPEED_UP))


def keep(board: MeasuredBoard, photo: Path) -> dict[str, str]:
    """A file in the board's storage, as a payload names it."""
    with board.board.files.spool() as spool:
        spool.write(photo.read_bytes())
        spool.finish()
        return {"file": board.board.files.keep([(photo.name, spool)], "key:bench")[0]["file_id"]}


def _by_board(stand: Stand, photos: Sequence[Path], slots: int) -> Figures:
    """From the first claim to the last end, with children that are there already."""
    with measured(stand, stand.postgres()) as board:
        board.add_type("thumbnail", "image.thumbnail", size=SIDE)
        board.add_type("warm", "image.thumbnail", size=SIDE + 1)
        files = [keep(board, it) for it in photos]
        [worker] = board.workers(1, slots=8, env={"BOARD_FILE_CONCURRENCY": str(slots)})
        for file in files[:slots]:
            board.fill(1, "warm", payload={"photo": file})
        board.wait_until_done()
        # In one go, so that all of them wait when the first is claimed.
        board.fill_each("thumbnail", [{"photo": file} for file in files])
        board.wait_until_done()
        seconds = board.claimed_to_done("thumbnail")
        worker.stop()
    return _figures(len(photos), seconds)


def _timed(photos: Sequence[Path], one: Callable[[Path, Path], None]) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        for number, source in enumerate(photos):
            one(source, Path(folder) / f"{number}.jpg")
        return _figures(len(photos), time.perf_counter() - begun)


def _by_pillow(source: Path, made: Path) -> None:
    with Image.open(source) as image:
        image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)  # decodes a JPEG at a fraction, by itself
        image.save(made, quality=85, progressive=True, optimize=True)


def _by_magick(program: str, source: Path, made: Path) -> None:
    hint = ["-define", f"jpeg:size={2 * SIDE}x{2 * SIDE}"]  # decodes at a fraction
    command = [program, *hint, str(source), "-auto-orient", "-thumbnail", f"{SIDE}x{SIDE}", "-quality", "85", str(made)]
    subprocess.run(command, check=True)


def _by_vips(source: Path, made: Path) -> None:
    import pyvips

    pyvips.Image.thumbnail(str(source), SIDE).jpegsave(str(made), Q=85, interlace=True)


def _starts(photo: Path) -> tuple[Figures, Figures]:
    """What the first photo of a child takes, and the next one."""
    cold, warm = [], []
    makers, options = "integrations.files.images.make", {"size": SIDE}

    async def make(pool: Pool, folder: str) -> float:
        begun = time.perf_counter()
        given = (makers, "image.thumbnail", str(photo), folder, MOST_PIXELS, options)
        await pool.run(Turn(1), 60.0, child.make, *given)
        return time.perf_counter() - begun

    async def both() -> None:
        pool = Pool()
        with tempfile.TemporaryDirectory() as folder:
            cold.append(await make(pool, folder))
            warm.append(await make(pool, folder))
        pool.close()

    for _ in range(STARTS):
        asyncio.run(both())
    return _figures(1, median(cold)), _figures(1, median(warm))


def _figures(count: int, seconds: float) -> Figures:
    return {"photos/s": count / seconds, "ms/photo": seconds / count * 1000}
