"""The tests among several worker processes: `make test`, or `pytest -n auto`.

Each worker has servers, databases, folders and browsers of its own, because every fixture of this folder belongs to
one process. What lets no neighbour come near, such as a test that compares times, is marked `alone`: it runs when
all the rest is done and every worker but one has ended with its servers.

A file's tests stay together in pieces, so that what is made once for a file is not made for each test, and the folders
whose tests take longest come first, so that no long file is left for the end.
"""

import json
import os
import tempfile
from collections import deque
from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import pytest

MOST_WORKERS = 8  # each has a PostgreSQL, a Valkey and now and then a Chromium: about a gigabyte
PIECE = 8  # tests of one file that are handed out together; a second or so, half a minute of the longest
LONGEST = ("tests/soak/", "tests/e2e/", "tests/chaos/", "tests/test_", "tests/worker/", "tests/web/")


class Worker(Protocol):
    """What the scheduler asks of pytest-xdist's `WorkerController`."""

    @property
    def shutting_down(self) -> bool: ...

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        """Add these tests to what it does. It begins one when it knows the next one, or that there is none."""

    def shutdown(self) -> None:
        """It does what it has, and ends."""


class AloneLast:
    """Hands out the tests, as pytest-xdist's protocol `Scheduling` asks. A test is its place in `names`.

    alone: the names of the tests that are marked so, asked for when every worker has told what it sees.
    """

    def __init__(self, workers: int, alone: Callable[[], Collection[str]]) -> None:
        self.names: list[str] = []  # of all tests, once every worker has told the same ones
        self._workers, self._alone_names = workers, alone
        self._told: dict[Worker, list[str]] = {}
        self._given: dict[Worker, list[int]] = {}  # not done yet
        self._waiting: deque[list[int]] = deque()
        self._alone: list[int] = []

    # -- the workers --------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> list[Worker]:
        return list(self._given)

    @property
    def collection_is_completed(self) -> bool:
        return len(self._told) >= self._workers

    def add_node(self, node: Worker) -> None:
        self._given[node] = []

    def add_node_collection(self, node: Worker, collection: Sequence[str]) -> None:
        self._told[node] = list(collection)

    def remove_node(self, node: Worker) -> str | None:
        """The worker has ended. The test in which it died, if it had not done everything."""
        given = self._given.pop(node)
        died_in = self.names[given.pop(0)] if given else None
        if given:
            self._waiting.appendleft(given)
        self._hand_out()
        return died_in

    # -- the tests ----------------------------------------------------------------------------------------------------

    @property
    def has_pending(self) -> bool:
        return self.left_out or any(self._given.values())

    @property
    def left_out(self) -> bool:
        """Whether there is something that no worker was given."""
        return bool(self._waiting or self._alone)

    @property
    def tests_finished(self) -> bool:
        return self.collection_is_completed and not self.left_out and not any(map(self._is_busy, self._given))

    def schedule(self) -> None:
        """Every worker has told its tests: begin. Called again when a worker was replaced."""
        if not self.names:
            self.names, *others = self._told.values()
            for other in others:
                if other != self.names:
                    unlike = sorted(set(self.names) ^ set(other))[:5] or "their order"
                    raise pytest.UsageError(f"The workers do not see the same tests: {unlike}.")
            alone = self._alone_names()
            self._alone = [place for place, name in enumerate(self.names) if name in alone]
            self._waiting.extend(pieces(self.names, alone))
        self._hand_out()

    def mark_test_complete(self, node: Worker, item_index: int, duration: float = 0) -> None:
        self._given[node].remove(item_index)
        self._hand_out()

    def mark_test_pending(self, item: str) -> None:
        self._waiting.appendleft([self.names.index(item)])
        self._hand_out()

    def remove_pending_tests_from_node(self, node: Worker, indices: Sequence[int]) -> None:
        raise NotImplementedError("nothing that was handed out is taken back")

    def _hand_out(self) -> None:
        running = [worker for worker in self._given if not worker.shutting_down]
        for worker in running:
            while self._waiting and not self._is_busy(worker):
                self._give(worker, self._waiting.popleft())
        if self._alone and len(self._given) == len(running) == 1 and not self._is_busy(running[0]):
            self._give(running[0], self._alone)
            self._alone = []
        idle = [worker for worker in running if not self._is_busy(worker)]
        for worker in idle[1:] if self._alone and len(idle) == len(running) else idle:
            worker.shutdown()

    def _give(self, worker: Worker, tests: list[int]) -> None:
        self._given[worker] += tests
        worker.send_runtest_some(tests)

    def _is_busy(self, worker: Worker) -> bool:
        """It does the first test that it has when it knows of a second one."""
        return len(self._given[worker]) >= 2


def pieces(names: Sequence[str], but: Collection[str] = ()) -> list[list[int]]:
    """The tests' places in the order in which they are handed out: parts of files, the longest folders first."""
    places = [place for place, name in enumerate(names) if name not in but]
    cut = []
    for _, grouped in groupby(places, key=lambda place: names[place].partition("::")[0]):
        file = list(grouped)
        cut += [file[start : start + PIECE] for start in range(0, len(file), PIECE)]
    return sorted(cut, key=lambda piece: _rank(names[piece[0]]))


def _rank(name: str) -> int:
    return next((rank for rank, folder in enumerate(LONGEST) if name.startswith(folder)), len(LONGEST))


# -- hooks of pytest and pytest-xdist ---------------------------------------------------------------------------------

_SCHEDULER = pytest.StashKey[AloneLast]()
_MARKED = pytest.StashKey[Path]()  # where the workers write which tests are `alone`: they tell the scheduler names only


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """BOARD_TEST_WORKERS, or as many as there are processors. One is the plain run, in this process."""
    asked = os.environ.get("BOARD_TEST_WORKERS")
    workers = int(asked) if asked else min(len(os.sched_getaffinity(0)), MOST_WORKERS)
    return workers if workers > 1 else 0


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    stash = node.config.stash
    if _MARKED not in stash:
        folder = tempfile.TemporaryDirectory(prefix="board-marked-")
        node.config.add_cleanup(folder.cleanup)
        stash[_MARKED] = Path(folder.name)
    node.workerinput["marked"] = str(stash[_MARKED] / node.gateway.id)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist tells the names
def pytest_collection_finish(session: pytest.Session) -> None:
    if workerinput := getattr(session.config, "workerinput", None):
        marked = [item.nodeid for item in session.items if item.get_closest_marker("alone")]
        Path(workerinput["marked"]).write_text(json.dumps(marked))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config) -> AloneLast:
    def alone() -> set[str]:
        return {name for file in config.stash[_MARKED].iterdir() for name in json.loads(file.read_text())}

    config.stash[_SCHEDULER] = AloneLast(len(config.option.tx), alone)
    return config.stash[_SCHEDULER]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Workers that ended before everything was done are no pass."""
    scheduler = session.config.stash.get(_SCHEDULER, None)
    if scheduler is not None and scheduler.left_out and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
