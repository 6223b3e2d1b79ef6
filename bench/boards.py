"""A board to be measured: wired in this process for putting tasks in, with real worker and API processes beside it."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import func, literal_column, select

from bench.stand import Stand
from board import settings
from board.catalogue.apply import apply
from board.rooms import Board, open_board
from board.tasks.bodies import TaskIn
from board.tasks.history import By
from board.tasks.models import attempts, task_events, tasks
from board.worker.builtin import Echo
from board.worker.registry import load_handlers
from tests.rig.board import BoardProcess
from tests.rig.trial_package import TrialPackage

CALLER = By("key", "bench", "api")
PATIENCE = 300.0  # seconds that a measurement waits for its end before it is given up
LOOK_SECONDS = 0.1  # between two looks whether all is done; the end itself is read from the rows
CHUNK = 1000  # tasks put in at once, as the API takes them
# What a flow usually sends along: some text, a number, a reference.
PAYLOAD = {"text": "x" * 200, "order": 4711, "customer": "C-1004711"}


class Nap(Echo):
    """Stands here for the handler of the same name that the worker processes have: it takes as long as it is told."""

    name = "nap"


class MeasuredBoard:
    """`board`: the wired rooms. Every task it puts in has a number of its own; it knows the types echo and nap."""

    def __init__(self, stand: Stand, url: str, type: Mapping[str, Any], **given: Any) -> None:
        self.url, self.folder, self._stand = url, stand.place(), stand
        self._numbers = itertools.count()
        self._package = TrialPackage(self.folder / "trial")
        loaded = settings.load(database_url=url, data_dir=self.folder / "data", **given)
        self.board: Board = open_board(loaded)
        self.board.signals.start(())  # tells the worker processes what is put in, as an API process does
        types = [{"name": name, "handler": {"use": name}, "require_id": False, **type} for name in ("echo", "nap")]
        known = {**load_handlers(), Nap.name: Nap()}
        with self.board.db.write() as tx:
            spec = {"types": types, "connections": []}
            apply(tx, spec, handlers=known, vault=self.board.vault, author="key:bench")

    def start(self, role: str, *options: str) -> BoardProcess:
        """A process of this board that is up: `api` or `up`."""
        started = self._process(role, *options)
        started.wait_until_healthy()
        return started

    def add_type(self, name: str, use: str, **handler: Any) -> None:
        """One more type. handler: further keys of its block."""
        spec = {"types": [{"name": name, "handler": {"use": use, **handler}, "require_id": False}], "connections": []}
        with self.board.db.write() as tx:
            apply(tx, spec, handlers=self.board.handlers, vault=self.board.vault, author="key:bench")

    def workers(self, number: int, slots: int, env: Mapping[str, str] | None = None) -> list[BoardProcess]:
        """So many worker processes that are up. The handler `nap` is installed in them. env: further settings."""
        started = [self._process("worker", "--concurrency", str(slots), env=env) for _ in range(number)]
        for it in started:
            it.wait_for_log("The worker ")
        return started

    def _process(self, *arguments: str, env: Mapping[str, str] | None = None) -> BoardProcess:
        env = dict(env or {}) | {
            "BOARD_DATABASE_URL": self.url,
            "BOARD_ALLOW_PRIVATE_TARGETS": "127.0.0.1",  # for a receiver on this machine
            "PYTHONPATH": self._package.environment["PYTHONPATH"],
        }
        return self._stand.board_process(self.folder, *arguments, env=env)

    def bodies(self, count: int, type: str = "echo", **parts: Any) -> list[TaskIn]:
        made = {"type": type, "payload": PAYLOAD} | parts
        return [TaskIn.model_validate({"task_id": f"t-{next(self._numbers)}", **made}) for _ in range(count)]

    def fill(self, count: int, type: str = "echo", **parts: Any) -> None:
        """Put so many tasks in, visible to workers at the same moment."""
        self._put_in(self.bodies(count, type, **parts))

    def fill_each(self, type: str, payloads: Sequence[Mapping[str, Any]], **parts: Any) -> None:
        """The same, one task for each payload."""
        self._put_in([body for it in payloads for body in self.bodies(1, type, payload=it, **parts)])

    def _put_in(self, bodies: Sequence[TaskIn]) -> None:
        intake = self.board.intake
        with self.board.db.write() as tx:
            seen = intake.look(tx)
            for begin in range(0, len(bodies), CHUNK):
                chunk = bodies[begin : begin + CHUNK]
                intake.store(tx, [(body, intake.prepare(tx, body, CALLER, seen=seen)) for body in chunk], CALLER)

    def unfinished(self) -> bool:
        with self.board.db.read() as connection:
            waiting = tasks.c.status.in_(["pending", "running", "retrying"])
            return bool(connection.execute(select(select(tasks.c.id).where(waiting).exists())).scalar())

    def wait_until_done(self) -> None:
        wait_for(lambda: not self.unfinished())

    def claimed_to_done(self, type: str | None = None) -> float:
        """Seconds from the first claim to the last end; type: of these tasks alone."""
        span = select(func.min(tasks.c.started_at), func.max(tasks.c.finished_at))
        span = span if type is None else span.where(tasks.c.type == type)
        with self.board.db.read() as connection:
            first, last = connection.execute(span).one()
        assert isinstance(first, datetime)
        assert isinstance(last, datetime)
        return (last - first).total_seconds()

    def commits(self, *kinds: str) -> float:
        """How many transactions wrote the events of these kinds; not known on SQLite, whose rows do not tell."""
        if self.board.db.is_sqlite:
            return math.nan
        query = select(func.count(literal_column("task_events.xmin::text").distinct()))
        with self.board.db.read() as connection:
            return float(connection.execute(query.where(task_events.c.kind.in_(kinds))).scalar_one())

    def shares(self) -> list[float]:
        """Of all attempts, which part each worker made; the busiest first."""
        query = select(func.count()).select_from(attempts).group_by(attempts.c.worker)
        with self.board.db.read() as connection:
            counts = sorted(connection.execute(query).scalars(), reverse=True)
        return [count / sum(counts) for count in counts]

    def close(self) -> None:
        self.board.close()


@contextmanager
def measured(stand: Stand, url: str, type: Mapping[str, Any] | None = None, **given: Any) -> Iterator[MeasuredBoard]:
    """type: further keys of its types. given: settings."""
    board = MeasuredBoard(stand, url, type or {}, **given)
    try:
        yield board
    finally:
        board.close()


def wait_for(holds: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Look until it holds. TimeoutError when it does not come to that."""
    end = time.monotonic() + patience
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"it did not come to its end within {patience:g} s")
        time.sleep(LOOK_SECONDS)
