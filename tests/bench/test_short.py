"""The short form of every measurement: it runs to its end, its figures have their shape, and what can be counted holds.

How fast something is depends on what else the machine does, and is judged by `make bench` alone.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from PIL import Image
from sqlalchemy import RowMapping, select

from bench import bloat, drain, files, growth, idle, intake, limit, outbox, pages, rivals, scaling, thumbnails, urgent
from bench.boards import MeasuredBoard, measured
from bench.crowd import crowd
from bench.photos import photos
from bench.report import Report
from bench.stand import Stand
from board.tasks.models import attempts, task_data, task_events, tasks
from integrations.files.bad_file import BadFile
from tests.rig.postgres import Postgres, wheel_binaries
from tests.rig.reaper import Reaper


@pytest.fixture
def stand(shared_folder: Path, tmp_path: Path, postgres: Postgres, reaper: Reaper) -> Iterator[Stand]:
    programs = None if os.environ.get("BOARD_TEST_DATABASE_URL") else wheel_binaries(shared_folder)
    it = Stand(tmp_path, postgres, reaper, programs)
    yield it
    it.close()


def sound(report: Report) -> None:
    """Every figure that is known is a number above nothing, every goal is judged, and all can be written down."""
    for variant, figures in report.rows.items():
        for name, value in figures.items():
            assert math.isnan(value) or value >= 0, f"{variant}: {name} is {value}"
    lines = [json.loads(line) for line in report.json_lines()]
    assert all(line["bench"] == report.name for line in lines)
    assert [line["met"] for line in lines if "goal" in line] == [goal.met for goal in report.goals]
    assert all(variant in report.table() for variant in report.rows)


def test_drain(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals, "RIVALS", {})  # theirs need packages of their own
    report = drain.run(stand, tasks=200, rounds=1, sqlite=False)
    sound(report)
    for variant in report.rows:
        assert report.rows[variant]["tasks/s"] > 0
    assert 0 < report.rows["board"]["commits/task"] <= 0.5, "claims and ends of many tasks share a commit"


def test_the_limit_writes_the_rows_of_the_board(stand: Stand) -> None:
    if (program := limit.pgbench(stand.programs)) is None:
        pytest.skip("pgbench is not available: it comes with PostgreSQL")
    with measured(stand, stand.postgres(), concurrency=100) as by_board, measured(stand, stand.postgres()) as by_limit:
        for it in (by_board, by_limit):
            it.fill(200)
        consumer = by_board.board.make_consumer()
        consumer.start()
        by_board.wait_until_done()
        consumer.stop()
        limit.drain(program, by_limit.url, 200)
        assert rows(by_limit) == rows(by_board)
        assert by_limit.commits("started") == by_limit.commits("done") == 200 / limit.BATCH


OF_THE_RUN = {"id", "task", "lease_owner", "actor_name", "worker", "ready_at", "lane_since"}


def rows(it: MeasuredBoard) -> list[dict[str, object]]:
    """What the first task left behind, times only by whether there are any."""

    def plain(row: RowMapping) -> dict[str, object]:
        kept = {name: value for name, value in row.items() if name not in OF_THE_RUN}
        return {
            name: value is not None if name.endswith("_at") or name == "at" else value for name, value in kept.items()
        }

    with it.board.db.read() as connection:
        first = connection.execute(select(tasks).order_by(tasks.c.id)).mappings().first()
        assert first is not None
        found = [plain(first)]
        for table in (task_data, attempts, task_events):
            query = select(table).where(table.c.task == first["id"]).order_by(*table.primary_key)
            found += [plain(row) for row in connection.execute(query).mappings()]
    return found


def test_intake(stand: Stand) -> None:
    report = intake.run(stand, bulk=1000, single=20, rounds=1)
    sound(report)
    assert set(report.rows) == {intake.LEDGER, intake.BULK, intake.SINGLE}
    assert report.rows[intake.LEDGER]["commits/task"] == report.rows[intake.BULK]["commits/task"] == 1 / 1000


def test_scaling(stand: Stand) -> None:
    report = scaling.run(stand, workers=[2], turns=2, rounds=1)
    sound(report)
    assert report.rows["2 workers"]["share of the busiest"] < 0.9, "the second worker took its part"


def test_growth(stand: Stand) -> None:
    report = growth.run(stand, few=1000, many=20_000, rounds=3)
    sound(report)
    few, many = (row["blocks/claim"] for row in report.rows.values())
    assert 0 < many <= few * growth.FACTOR, "twenty times as many tasks wait, and a claim looks at as much as before"


def test_pages(stand: Stand) -> None:
    report = pages.run(stand, waiting=60, finished=20, looks=2)
    sound(report)
    assert 10 < report.rows["first sight"]["kB"] < pages.FIRST_SIGHT, "thirty rows, styles and scripts"


def test_rush_orders(stand: Stand) -> None:
    report = urgent.run(stand, waiting=500, orders=5)
    sound(report)
    (row,) = report.rows.values()
    assert 0 < row["median ms"] <= row["p99 ms"]


def test_idle(stand: Stand) -> None:
    report = idle.run(stand, roles=["worker"], settle=0.0, seconds=0.5)
    sound(report)
    assert 10 < report.rows["worker"]["memory MB"] < idle.MOST_MB


def test_a_vacuum_cleans_the_indexes_although_few_rows_are_dead(stand: Stand) -> None:
    """Else a claim would walk through what former claims have left, until a fiftieth of the table is dead."""
    said: list[str] = []
    with measured(stand, stand.postgres()) as board:
        crowd(board, 10_000)
        growth.claim(board)
        with psycopg.connect(board.url, autocommit=True) as connection:
            connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
            connection.execute("VACUUM (VERBOSE) tasks")
    assert "index scan needed" in "".join(said)


def test_bloat(stand: Stand) -> None:
    report = bloat.run(stand, days=4, tasks=100, patience=0.0)
    sound(report)
    archived = [report.rows[f"day {day}"]["archived"] for day in (1, 2, 3, 4)]
    assert archived == [0, 0, 100, 100], "each day what ended two days ago goes"
    assert report.rows["then a claim"]["blocks/claim"] > 0


def test_outbox(stand: Stand) -> None:
    report = outbox.run(stand, ends=50, sent=100, rounds=1)
    sound(report)
    assert set(report.rows) == {outbox.PLAIN, outbox.TOLD, "calls of one worker"}
    assert report.rows["calls of one worker"]["calls/s"] > 0


def test_files(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_ffmpeg() -> str:
        raise BadFile("there is none")

    monkeypatch.setattr(files, "find_ffmpeg", no_ffmpeg)  # a film takes its time
    monkeypatch.setattr(thumbnails, "STARTS", 1)
    report = files.run(stand, count=2, size=(300, 200), beside=2, calls=5, rounds=1, slots=[1])
    sound(report)
    assert {thumbnails.SLOTS[1], thumbnails.LOOP, files.IDLE, files.BESIDE} <= set(report.rows)
    assert report.rows[thumbnails.SLOTS[1]]["photos/s"] > 0
    assert "There is no ffmpeg: a photo of P0 beside a film was not measured." in report.remarks


def test_photos_are_photos_and_each_is_another_one(tmp_path: Path) -> None:
    made = photos(tmp_path, 3, (300, 200))
    assert len({it.read_bytes() for it in made}) == 3
    with Image.open(made[2]) as image:
        assert (image.format, image.size, image.mode) == ("JPEG", (300, 200), "RGB")


def test_a_measurement_that_is_not_there_is_refused_by_name(pytestconfig: pytest.Config) -> None:
    command = [sys.executable, "-m", "bench", "speed"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=pytestconfig.rootpath, check=False)
    assert done.returncode == 2
    assert "there is no measurement “speed”; there are drain, intake" in " ".join(done.stderr.split())
