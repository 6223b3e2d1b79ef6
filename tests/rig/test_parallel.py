"""Several workers: everything is done once, what is marked `alone` has no neighbour, and a broken run is no pass."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.rig.parallel import PIECE, AloneLast, pieces

CONFTEST = 'pytest_plugins = ["tests.rig.parallel"]\n'
PLAIN = """
import pathlib, time
import pytest

here, name = pathlib.Path(__file__).parent, pathlib.Path(__file__).stem

def test_beside_another_worker():
    (here / f"begun-{name}").touch()
    end = time.monotonic() + 30
    while len(list(here.glob("begun-*"))) < 2:
        assert time.monotonic() < end, "the other file's test never began"
        time.sleep(0.01)

def test_that_takes_its_time():
    time.sleep(0.3)  # so that what did not wait for it would be seen
    assert not (here / "alone").exists()
    (here / f"ended-{name}").touch()
"""
MARKED = """
import pytest

@pytest.mark.alone
def test_alone():
    (here / "alone").touch()
    assert len(list(here.glob("ended-*"))) == 2
"""


class Worker:
    """A worker that does what it has as pytest-xdist's does: the last test only when it knows that there is no more."""

    def __init__(self) -> None:
        self.has: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        assert not self.shutting_down
        self.has += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def names(file: str, number: int) -> list[str]:
    return [f"tests/{file}.py::test_{n}" for n in range(number)]


def run(collection: list[str], workers: int, alone: Sequence[str] = ()) -> list[tuple[int, str, int]]:
    """Everything in turns: which worker did which test, and how many workers there were."""
    scheduler, crew, done = AloneLast(workers, lambda: alone), [Worker() for _ in range(workers)], []
    for worker in crew:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, collection)
    scheduler.schedule()
    while scheduler.nodes:
        before = len(done), len(scheduler.nodes)
        for number, worker in enumerate(crew):
            if worker in scheduler.nodes and (len(worker.has) > 1 or (worker.has and worker.shutting_down)):
                done.append((number, collection[worker.has[0]], len(scheduler.nodes)))
                scheduler.mark_test_complete(worker, worker.has.pop(0))
            elif worker in scheduler.nodes and worker.shutting_down:
                assert scheduler.remove_node(worker) is None
        assert (len(done), len(scheduler.nodes)) != before, "it hangs"
    assert scheduler.tests_finished
    assert not scheduler.left_out
    return done


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("plain", [0, 1, 2, 3, 50])
@pytest.mark.parametrize("alone", [0, 1, 2, 9])
def test_all_is_done_once_and_what_is_alone_has_no_neighbour(workers: int, plain: int, alone: int) -> None:
    marked = names("a", alone)
    collection = [*marked, *names("b", plain)]
    done = run(collection, workers, marked)
    assert sorted(name for _, name, _ in done) == sorted(collection)
    assert [there for _, name, there in done if name in marked] == [1] * alone


def test_a_file_stays_together_in_pieces_and_the_longest_folders_come_first() -> None:
    collection = [*names("access/test_a", PIECE + 1), *names("web/test_b", 2), *names("e2e/test_c", 1)]
    files = [{collection[place].partition("::")[0] for place in piece} for piece in pieces(collection)]
    assert files == [{f"tests/{name}.py"} for name in ("e2e/test_c", "web/test_b", "access/test_a", "access/test_a")]
    assert len({number for number, name, _ in run(collection, 2) if "test_a" in name}) == 2


def test_what_a_dead_worker_had_is_done_by_another() -> None:
    collection = names("a", 6)
    scheduler, dead, other = AloneLast(2, list), Worker(), Worker()
    for worker in (dead, other):
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, collection)
    scheduler.schedule()
    assert dead.has == [0, 1, 2, 3, 4, 5]
    assert other.shutting_down, "there is nothing for it"
    assert scheduler.remove_node(dead) == collection[0]
    assert scheduler.left_out
    new = Worker()
    scheduler.add_node(new)
    scheduler.add_node_collection(new, collection)
    scheduler.schedule()
    assert new.has == [1, 2, 3, 4, 5]


def test_workers_that_see_other_tests_are_refused() -> None:
    scheduler = AloneLast(2, list)
    for number in (1, 2):
        worker = Worker()
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, names("a", number))
    with pytest.raises(pytest.UsageError, match=r"do not see the same tests: \['tests/a.py::test_1'\]"):
        scheduler.schedule()


def pytest_on(folder: Path, root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", root / "pyproject.toml"]
    return subprocess.run(
        [*command, "--rootdir", folder, *arguments, folder],
        capture_output=True,
        text=True,
        cwd=root,
        timeout=120,
        check=False,
    )


def test_in_real_workers(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_first.py").write_text(PLAIN + MARKED)
    (tmp_path / "test_second.py").write_text(PLAIN)
    ended = pytest_on(tmp_path, pytestconfig.rootpath, "-n", "2")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "5 passed" in ended.stdout


def test_a_worker_that_dies_fails_the_run(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text("import os\ndef test_dies():\n    os._exit(0)\ndef test_lives():\n    pass\n")
    ended = pytest_on(tmp_path, pytestconfig.rootpath, "-n", "2")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "1 failed, 1 passed" in ended.stdout
