"""A whole board in this process: wired as in production, with handlers of the test's own and a real consumer."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest
from sqlalchemy import Connection, RowMapping, select

from board import settings
from board.access.rights import Actor, key_actor
from board.catalogue.apply import apply
from board.db.engine import after_commit
from board.effects.models import deliveries, operations
from board.ports import Handler, Job, NotStarted, Outcome, SentOperation, UnknownOutcome
from board.review.decide import Verdict
from board.review.models import reviews
from board.rooms import Board, open_board
from board.tasks.bodies import TaskIn
from board.tasks.history import By
from board.tasks.ledger import find
from board.tasks.models import attempts, task_data, task_events
from board.tasks.view import data_of
from board.worker.registry import load_handlers
from tests.heart import settable_clock

CALLER = By("key", "n8n", "api")
LI = key_actor("li", ["review"])
FAST = {"base": "20ms", "cap": "100ms"}  # retries that a test can wait for
WAIT = 15.0  # seconds; far more than anything here takes


class Gate:
    """Something that a handler waits for and the test opens; and the other way round."""

    def __init__(self) -> None:
        self._future: Future[None] = Future()

    def open(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def passed(self) -> None:
        await asyncio.shield(asyncio.wrap_future(self._future))

    def wait(self, timeout: float = WAIT) -> None:
        self._future.result(timeout)


class Probe:
    """A handler that does what the test says. `seen` holds every job it was given."""

    connection_kind: str | None = None
    phases = ("work", "act")

    def __init__(
        self,
        run: Callable[[Job], Awaitable[Outcome]],
        reconcile: Callable[[Job, SentOperation], Awaitable[Outcome | NotStarted]] | None = None,
        *,
        name: str = "probe",
        side_effects: bool = False,
    ) -> None:
        self.name, self.side_effects = name, side_effects
        self._run, self._reconcile = run, reconcile
        self.seen: list[Job] = []
        self.asked: list[SentOperation] = []

    def check(self, handler: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        return ()

    async def run(self, job: Job) -> Outcome:
        self.seen.append(job)
        return await self._run(job)

    async def reconcile(self, job: Job, operation: SentOperation) -> Outcome | NotStarted:
        self.asked.append(operation)
        return await self._reconcile(job, operation) if self._reconcile else UnknownOutcome("Nobody can tell.")


class WorkingBoard:
    """`board` is the wired board; the rest puts work in and looks at what became of it."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self._moved = threading.Condition()
        board.ledger.followers.append(lambda tx, _: after_commit(tx, self._tell))
        self._running = False
        self._clock = ExitStack()
        self.at = self._clock.enter_context(settable_clock(board.db))  # `at(seconds)`: that far ahead of the real time

    def _tell(self) -> None:
        with self._moved:
            self._moved.notify_all()

    def start(self) -> None:
        self.board.make_consumer().start()
        self._running = True

    def stop(self) -> None:
        if self._running and self.board.consumer is not None:
            self.board.consumer.stop()
        self._running = False

    def close(self) -> None:
        self.stop()
        self._clock.close()
        self.board.close()

    # -- in -----------------------------------------------------------------------------------------------------------

    def apply(self, *, types: Sequence[dict[str, Any]] = (), connections: Sequence[dict[str, Any]] = ()) -> None:
        data = {"types": list(types), "connections": list(connections)}
        with self.board.db.write() as tx:
            apply(tx, data, handlers=self.board.handlers, vault=self.board.vault, author="key:test")

    def type(self, name: str = "trial", use: str = "probe", **parts: Any) -> None:
        """One type on `probe`, retrying fast. handler: further keys of its block."""
        handler = {"use": use} | parts.pop("handler", {})
        retry = FAST | parts.pop("retry", {})
        self.apply(types=[{"name": name, "handler": handler, "retry": retry, "require_id": False, **parts}])

    def submit(self, task_id: str = "T-1", type: str = "trial", **body: Any) -> str:
        with self.board.db.write() as tx:
            taken = self.board.intake.take(tx, TaskIn(type=type, task_id=task_id, **body), CALLER)
        return taken.task_id

    def decide(self, task_id: str, verdict: str, actor: Actor = LI, **more: Any) -> bool:
        """Decide the latest review; True when it was only answered again."""
        review = self.reviews(task_id)[-1]
        with self.board.db.write() as tx:
            return self.board.decisions.decide(tx, review["id"], Verdict(verdict, **more), actor, "api")

    def undo(self, task_id: str, actor: Actor = LI) -> None:
        with self.board.db.write() as tx:
            self.board.decisions.undo(tx, self.reviews(task_id)[-1]["id"], actor, "api")

    def cancel(self, task_id: str) -> None:
        with self.board.db.write() as tx:
            row = self.board.ledger.lock(tx, self.task(task_id)["id"])
            self.board.ledger.cancel(tx, row, CALLER, None)

    # -- out ----------------------------------------------------------------------------------------------------------

    def task(self, task_id: str = "T-1") -> RowMapping:
        with self.board.db.read() as connection:
            row = find(connection, task_id)
        assert row is not None
        return row

    def data(self, task_id: str = "T-1") -> RowMapping:
        with self.board.db.read() as connection:
            return data_of(connection, self._id(connection, task_id))

    def wait(self, task_id: str, *statuses: str, timeout: float = WAIT) -> RowMapping:
        """The task's row once it has one of these statuses."""
        came = self._watch(lambda: self.task(task_id)["status"] in statuses, timeout)
        row = self.task(task_id)
        assert came, f"{task_id} is {row['status']} ({row['last_error']}) and not {' or '.join(statuses)}"
        return row

    def until(self, holds: Callable[[], bool], timeout: float = WAIT) -> None:
        """Wait until it holds."""
        assert self._watch(holds, timeout), "it never came to that"

    def _watch(self, holds: Callable[[], bool], timeout: float) -> bool:
        """Looks after every move of this process, and every 50 ms for those of others."""
        end = time.monotonic() + timeout
        with self._moved:
            while not (held := holds()) and time.monotonic() < end:
                self._moved.wait(0.05)
        return held

    def events(self, task_id: str = "T-1") -> list[RowMapping]:
        return self._rows(task_events, task_id, task_events.c.seq)

    def kinds(self, task_id: str = "T-1") -> list[str]:
        return [event["kind"] for event in self.events(task_id)]

    def attempts(self, task_id: str = "T-1") -> list[RowMapping]:
        return self._rows(attempts, task_id, attempts.c.number)

    def reviews(self, task_id: str = "T-1") -> list[RowMapping]:
        return self._rows(reviews, task_id, reviews.c.id)

    def operations(self, task_id: str = "T-1") -> list[RowMapping]:
        """With word to the caller that the sender has not written out yet: whoever locks the task does that."""
        with self.board.db.write() as tx:
            self.board.ledger.lock(tx, self._id(tx, task_id))
        return self._rows(operations, task_id, operations.c.id)

    def deliveries(self) -> list[RowMapping]:
        with self.board.db.read() as connection:
            return list(connection.execute(select(deliveries).order_by(deliveries.c.id)).mappings())

    def dump(self) -> str:
        """Every row that a task leaves behind, as one text: to look for what must not be there."""
        tables = (task_data, task_events, attempts, reviews, operations, deliveries)
        with self.board.db.read() as connection:
            return "\n".join(str(dict(row)) for it in tables for row in connection.execute(select(it)).mappings())

    def _rows(self, table: Any, task_id: str, order: Any) -> list[RowMapping]:
        with self.board.db.read() as connection:
            query = select(table).where(table.c.task == self._id(connection, task_id)).order_by(order)
            return list(connection.execute(query).mappings())

    @staticmethod
    def _id(connection: Connection, task_id: str) -> int:
        row = find(connection, task_id)
        assert row is not None
        return int(row["id"])


class OpenWorking(Protocol):
    """`working(Probe(run), lease="1s")`: a board with these handlers beside the usual ones, at work at once."""

    def __call__(self, *handlers: Any, start: bool = True, **settings: Any) -> WorkingBoard: ...


@pytest.fixture
def working(database_url: str, tmp_path: Path) -> Iterator[OpenWorking]:
    """Opens boards on the test's database, on each engine; may be called again for a second worker."""
    yield from _opener(database_url, tmp_path)


@pytest.fixture
def working_sqlite(sqlite_url: str, tmp_path: Path) -> Iterator[OpenWorking]:
    """The same on SQLite alone, for what has nothing to do with the database."""
    yield from _opener(sqlite_url, tmp_path)


@pytest.fixture
def working_postgres(postgres_url: str, tmp_path: Path) -> Iterator[OpenWorking]:
    """The same on PostgreSQL alone, for what needs two writers at the same moment."""
    yield from _opener(postgres_url, tmp_path)


def _opener(database_url: str, folder: Path) -> Iterator[OpenWorking]:
    opened: list[WorkingBoard] = []

    def open_(*handlers: Handler, start: bool = True, **given: Any) -> WorkingBoard:
        values = {"concurrency": 4, "allow_private_targets": ["127.0.0.1"]} | given
        loaded = settings.load(database_url=database_url, data_dir=folder / "data", **values)
        board = open_board(loaded, handlers=lambda: load_handlers() | {it.name: it for it in handlers})
        opened.append(WorkingBoard(board))
        if start:
            opened[-1].start()
        return opened[-1]

    yield open_
    for it in opened:
        it.close()
