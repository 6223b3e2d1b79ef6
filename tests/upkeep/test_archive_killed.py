"""A process that is killed while it archives loses nothing, whichever step it was at; on both databases."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig.board import board_environment

SCRIPT = Path(__file__).with_name("archive_process.py")


def test_sigkill_before_each_step(database_url: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    path = os.pathsep.join([str(pytestconfig.rootpath), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, SCRIPT, database_url, tmp_path / "data"],
        env=board_environment(tmp_path, {"PYTHONPATH": path}),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    # Two batches, each: file, name, folder, commit; then the file of the day, and the parts away.
    assert int(done.stdout) >= 2 * 4 + 3 + 2
