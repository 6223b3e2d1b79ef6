"""A package of the test's own for real processes: a handler that takes its time, one that writes, a settable clock.

It is found as any package with handlers is, by its entry point; `PYTHONPATH` leads to it.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from board.db.engine import Database

MODULE = '''
import asyncio
import os
import threading
import time
from pathlib import Path

from board.db import clock
from board.ports import Success


class Nap:
    """Sleeps as many seconds as the payload says; ends its process at once where it says `die`."""

    name = "nap"
    side_effects = False
    connection_kind = None
    phases = ("work", "act")

    def check(self, handler):
        return ()

    async def run(self, job):
        if job.payload.get("die"):
            os._exit(9)
        await asyncio.sleep(job.payload.get("seconds", 0))
        return Success(result={"attempt": job.attempt})

    async def reconcile(self, job, operation):
        raise AssertionError("it announces nothing")


class Writer:
    """Writes the payload's `pieces`, one every `pause` seconds, and tells after each how far it is."""

    name = "writer"
    side_effects = False
    connection_kind = None

    def check(self, handler):
        return ()

    async def run(self, job):
        pieces = job.payload.get("pieces", [])
        for number, piece in enumerate(pieces, 1):
            await job.text(piece)
            await job.progress(100 * number / len(pieces), f"{number} of {len(pieces)}")
            await asyncio.sleep(job.payload.get("pause", 0))
        return Success(result={"text": "".join(pieces)})

    async def reconcile(self, job, operation):
        raise AssertionError("it announces nothing")


def follow(file):
    while True:
        try:
            clock.set_offset(float(file.read_text()))
        except (OSError, ValueError):
            pass
        time.sleep(0.02)


if name := os.environ.get("BOARD_TEST_CLOCK"):
    threading.Thread(target=follow, args=(Path(name),), daemon=True).start()


def handlers():
    return [Nap(), Writer()]
'''


class TrialPackage:
    """`environment`: what a process needs to find it."""

    def __init__(self, folder: Path) -> None:
        about = folder / "board_trial-1.0.dist-info"
        about.mkdir(parents=True)
        (folder / "board_trial.py").write_text(MODULE)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: board-trial\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[board.handlers]\ntrial = board_trial:handlers\n")
        self._clock = folder / "clock"
        self._set(0.0)
        self.environment = {"PYTHONPATH": str(folder), "BOARD_TEST_CLOCK": str(self._clock)}

    def clock(self, database_url: str) -> Callable[[float], None]:
        """Gives `at(seconds)`: the board's clock that far ahead of the real one, in every process of the database."""

        def at(seconds: float) -> None:
            self._set(seconds)
            if database_url.startswith("sqlite"):
                return
            db = Database(database_url)
            with db.write() as tx:
                tx.execute(
                    text(
                        "CREATE OR REPLACE FUNCTION board_now() RETURNS timestamptz LANGUAGE sql STABLE AS "
                        f"'SELECT clock_timestamp() + make_interval(secs => {float(seconds)})'"
                    )
                )
            db.close()

        return at

    def _set(self, seconds: float) -> None:
        draft = self._clock.with_suffix(".new")
        draft.write_text(str(seconds))
        draft.replace(self._clock)


@pytest.fixture
def trial_package(tmp_path: Path) -> TrialPackage:
    """The package, made in a folder of this test."""
    return TrialPackage(tmp_path / "trial")
