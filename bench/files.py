"""Work on files: how fast it is, and what the rest of the board feels of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles

from sqlalchemy import select

from bench.boards import PAYLOAD, MeasuredBoard, measured, wait_for
from bench.caller import get, request, seconds_of_each
from bench.photos import SIZE, film, photos
from bench.report import Figures, Goal, Report
from bench.stand import Stand
from bench.thumbnails import keep, speed
from board.tasks.models import tasks
from integrations.files.bad_file import BadFile
from integrations.files.video.ffmpeg import find_ffmpeg
from tests.rig.board import API_KEY

NAME = "files"
IDLE, BESIDE = "the API, idle", "the API, beside photos"
SLOWER = 1.5  # a call to the API, beside work on files to without
AT_ONCE_MS = 1000.0  # until other work begins; callers notice nothing below
RUSH_MS = 2000.0  # until a photo of P0 begins beside a film
SIDES = (256, 384, 512, 640)  # pixels: each photo is worked on as often, never twice in the same way


def run(
    stand: Stand,
    *,
    count: int = 60,
    size: tuple[int, int] = SIZE,
    beside: int = 200,
    calls: int = 150,
    seconds: int = 60,
    rounds: int = 3,
    slots: Sequence[int] = (1, 2),
) -> Report:
    """count: photos; size: in pixels. beside: so many are worked on while the API is called, 4 of each at most.

    calls: to the API, each way. seconds: the length of the film. slots: for files, that are compared.
    """
    report = Report(NAME)
    pictures = photos(stand.place(), count, size)
    speed(stand, report, pictures, rounds, slots)
    with measured(stand, stand.postgres()) as board:
        for side in SIDES:
            board.add_type(f"thumbnail-{side}", "image.thumbnail", size=side)
        board.add_type("film", "video.transcode")
        files = [keep(board, it) for it in pictures]
        api = board.start("api")
        board.workers(1, slots=8, env={"BOARD_FILE_CONCURRENCY": "2"})
        _latency(board, report, api.url, files, beside, calls)
        _rush(board, report, stand.place(), files[0], seconds)
    return report


def _latency(
    board: MeasuredBoard, report: Report, url: str, files: Sequence[dict[str, str]], beside: int, calls: int
) -> None:
    """A program that puts a task in and looks at it, one call after another."""
    numbers = iter(range(10**9))

    def measure(most: int) -> Figures:
        requests = []
        for _ in range(most):
            name = f"c-{next(numbers)}"
            body = b'{"type": "nap", "task_id": "%s", "payload": {"seconds": 0}}' % name.encode()
            requests += [request(url, "/api/v1/tasks", API_KEY, body), get(url, f"/api/v1/tasks/{name}", API_KEY)]
        waits = [it * 1000 for it in seconds_of_each(url, requests)]
        cuts = quantiles(waits, n=20)
        return {"median ms": cuts[9], "p95 ms": cuts[18]}

    measure(calls // 10 + 2)  # statements are made and plans are known
    report.rows[IDLE] = idle = measure(calls)
    for side in SIDES[: -(-beside // len(files))]:
        board.fill_each(f"thumbnail-{side}", [{"photo": file} for file in files])
    wait_for(lambda: _begun(board, "thumbnail-%") >= 2)
    report.rows[BESIDE] = busy = measure(calls)
    still = _open(board, "thumbnail-%")
    if not still:
        report.remarks.append("The photos were done before the calls were: the API was not busy all the time.")
    board.fill(1, "nap", payload=PAYLOAD | {"seconds": 0})
    board.wait_until_done()
    started = _waits(board, "nap")[-1]
    report.rows["other work, beside photos"] = {"median ms": started}
    report.goals += [
        Goal(
            "p95 of a call to the API, beside photos to idle", busy["p95 ms"] / idle["p95 ms"], SLOWER, at_least=False
        ),
        Goal("until other work begins beside photos, in ms", started, AT_ONCE_MS, at_least=False),
    ]


def _rush(board: MeasuredBoard, report: Report, folder: Path, photo: dict[str, str], seconds: int) -> None:
    """A photo of P0 while films of P3 have all slots that they may have."""
    try:
        ffmpeg = find_ffmpeg()
    except BadFile:
        report.remarks.append("There is no ffmpeg: a photo of P0 beside a film was not measured.")
        return
    board.add_type("rush", "image.thumbnail", size=200)
    pictures = keep(board, film(folder / "film.avi", ffmpeg, seconds))
    board.fill_each("film", [{"film": pictures}] * 2, priority="P3", on_duplicate="return")
    wait_for(lambda: _begun(board, "film") == 2)
    board.fill(1, "rush", payload={"photo": photo}, priority="P0")
    wait_for(lambda: not _open(board, "rush"))
    films = _open(board, "film")
    waited, done = _waits(board, "rush")[0], board.claimed_to_done("rush") * 1000
    report.rows["a photo of P0, beside films of P3"] = {"median ms": waited, "until done ms": waited + done}
    report.goals.append(Goal("until a photo of P0 begins beside films, in ms", waited, RUSH_MS, at_least=False))
    if not films:
        report.remarks.append("The films were done before the photo: they were too short.")


def _begun(board: MeasuredBoard, type: str) -> int:
    query = select(tasks.c.id).where(tasks.c.type.like(type), tasks.c.started_at.is_not(None))
    with board.board.db.read() as connection:
        return len(connection.execute(query).all())


def _open(board: MeasuredBoard, type: str) -> int:
    query = select(tasks.c.id).where(tasks.c.type.like(type), tasks.c.finished_at.is_(None))
    with board.board.db.read() as connection:
        return len(connection.execute(query).all())


def _waits(board: MeasuredBoard, type: str) -> list[float]:
    """Milliseconds from put in to begun, in the order in which they came."""
    query = select(tasks.c.created_at, tasks.c.started_at).where(tasks.c.type == type).order_by(tasks.c.id)
    with board.board.db.read() as connection:
        return [(it.started_at - it.created_at).total_seconds() * 1000 for it in connection.execute(query)]
