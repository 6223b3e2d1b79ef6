"""The wheel holds all that the board needs, and runs in any folder without the checkout."""

import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import httpx2
import pytest

from tests.rig.board import BoardProcess, board_environment
from tests.rig.ports import free_port
from tests.rig.reaper import Reaper

ROOT = Path(__file__).parent.parent
# What is loaded at run time and is no Python module: one of each kind that the checkout holds must be in the wheel.
DATA = {
    "board/db/migrations": "board/db/migrations/",
    "board/locale": "board/locale/",
    "board/queue": "board/queue/",
    "board/web/static": "board/web/static/",
    "integrations/demo": "integrations/demo/",
    "templates": "board/_data/templates/",
    "sample_flows": "board/_data/sample_flows/",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built with what is installed: no network is needed."""
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    [path] = folder.glob("*.whl")
    return path


@pytest.mark.parametrize("source", DATA)
def test_the_wheel_holds_every_file_of(wheel: Path, source: str) -> None:
    files = [path for path in (ROOT / source).rglob("*") if path.is_file() and path.suffix != ".pyc"]
    expected = {DATA[source] + path.relative_to(ROOT / source).as_posix() for path in files if path.name[0] != "."}
    assert expected
    assert expected - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_the_wheel_holds_no_tests_and_no_data_of_the_developer(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"board", "integrations"}


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `board` command of a virtual environment that holds the wheel; the dependencies are lent from this one."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False, symlinks=True)
    [site_packages] = folder.glob("lib/python*/site-packages")
    lent = next(Path(entry) for entry in sys.path if (Path(entry) / "fastapi").is_dir())
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install"),
            *("--quiet", "--no-deps", "--no-index", wheel),
        ],
        check=True,
    )
    (site_packages / "lent.pth").write_text(f"{lent}\n")  # comes after site-packages; its own .pth files are not read
    return folder / "bin" / "board"


def test_the_command_helps_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    helped = subprocess.run(
        [installed, "--help"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=board_environment(tmp_path),
        check=False,
    )
    assert helped.returncode == 0, helped.stderr
    assert "migrate" in helped.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_demo_runs_in_an_empty_folder(installed: Path, tmp_path: Path, reaper: Reaper) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("BOARD_", "PYTHON"))}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [installed, "up", "--demo", "--port", url.rpartition(":")[2]],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            cwd=tmp_path,
            env=environment,
        )
    board = BoardProcess(process, url, tmp_path / "log", reaper)
    try:
        board.wait_until_healthy()
        with httpx2.Client(base_url=url, trust_env=False, follow_redirects=True, timeout=30) as client:
            ready = client.get("/readyz")
            assert ready.status_code == 200, ready.text
            first_page = client.get("/")
            assert first_page.status_code == 200, board.log
            assert first_page.headers["content-type"].startswith("text/html")
            stylesheets = re.findall(r'<link[^>]+href="([^"]+\.css[^"]*)"', first_page.text)
            assert stylesheets
            assert client.get(stylesheets[0]).status_code == 200
        assert (tmp_path / "data").is_dir()
    finally:
        code = board.stop()
    assert code == 0, board.log
    assert "Traceback" not in board.log
