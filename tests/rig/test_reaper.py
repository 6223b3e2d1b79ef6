"""Servers and folders of a test run do not outlive it, whatever ends it."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SERVER = "import signal; print(1, flush=True); signal.alarm(60); signal.pause()"
RUN = (
    f"SERVER = {SERVER!r}"
    + """
import subprocess, sys
from pathlib import Path
from tests.rig.reaper import Reaper
reaper = Reaper()
reaper.folder(Path(sys.argv[1]))
server = subprocess.Popen([sys.executable, "-c", SERVER], start_new_session=True)
reaper.guard(server.pid)
print("ready", flush=True)
sys.stdin.read()
"""
)


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_run_leaves_nothing(tmp_path: Path, pytestconfig: pytest.Config, signum: signal.Signals) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    run = subprocess.Popen(
        [sys.executable, "-c", RUN, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=pytestconfig.rootpath,
    )
    assert run.stdout is not None
    seen = b""
    while b"ready\n" not in seen or b"1\n" not in seen:
        seen += os.read(run.stdout.fileno(), 100)
    run.send_signal(signum)
    run.wait(10)
    # Server and reaper hold the pipe's writing end: its end is read when both are gone.
    assert select.select([run.stdout], [], [], 20)[0]
    assert os.read(run.stdout.fileno(), 100) == b""
    assert not folder.exists()
