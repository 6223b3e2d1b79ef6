"""`make run` is the board: when make is stopped the board ends, and nothing is left behind."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
from pathlib import Path

import httpx2
import pytest

from tests.rig.board import UNHANDLED, BoardProcess, board_environment
from tests.rig.need import missing
from tests.rig.ports import free_port
from tests.rig.reaper import Reaper

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("how", ["terminated", "interrupted", "killed"])
def test_nothing_is_left_when_make_is(how: str, tmp_path: Path, reaper: Reaper) -> None:
    if shutil.which("make") is None or not (ROOT / ".venv" / ".installed").exists():
        missing("an installed checkout", "run the suite by make test")
    if how == "killed" and shutil.which("setpriv") is None:
        missing("setpriv", "it is part of util-linux on Linux")
    port = free_port()
    held, holder = os.pipe()  # every process of the run holds the writing end: `held` ends when all have ended
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            ["make", "--silent", "run", f"ARGS=--port {port}"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=ROOT,
            env=board_environment(tmp_path),
            start_new_session=True,
            pass_fds=[holder],
        )
    os.close(holder)
    make = BoardProcess(process, f"http://127.0.0.1:{port}", tmp_path / "log", reaper)
    try:
        make.wait_until_healthy()
        if how == "terminated":
            make.signal(signal.SIGTERM)
        elif how == "interrupted":  # Ctrl-C reaches the whole group
            os.killpg(make.pid, signal.SIGINT)
        else:
            make.signal(signal.SIGKILL)
        ended, _, _ = select.select([held], [], [], 30)
        assert ended, f"still running 30 s after make was {how}:\n{make.log}"
        assert os.read(held, 1) == b""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(make.pid, signal.SIGKILL)
        make.wait()
        os.close(held)
    assert not UNHANDLED.search(make.log), make.log
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(make.url, trust_env=False)
