"""The whole demo on a real board: its catalogue is taken, its tasks go where they should, a reviewer's word counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Connection, select
from starlette.applications import Starlette
from starlette.routing import Mount

from board.access.rights import Act, Actor
from board.catalogue.apply import apply, parse
from board.db.engine import after_commit
from board.review.decide import Verdict
from board.review.models import reviews
from board.rooms import Board, open_board
from board.settings import Settings
from board.tasks.history import By
from board.tasks.intake import TaskIn
from board.tasks.ledger import Moved
from board.tasks.models import task_data, tasks
from board.worker.registry import load_handlers
from integrations.demo import samples
from integrations.demo.dify_app import create_app
from integrations.demo.streams import Pace
from integrations.dify import handlers as dify_handlers
from tests.rig.asgi import serve

EXPECTED = {
    "L-1001": "done",
    "L-1002": "done",
    "L-1003": "done",
    "L-1004": "done",
    "L-1005": "needs_review",
    "L-1006": "needs_review",
    "L-1007": "retrying",
    "L-1008": "failed",
    "L-1009": "done",
    "L-1010": "running",
    "L-1011": "pending",
    "L-1012": "needs_review",  # its workflow asks a person
    "C-2001": "needs_review",
    "C-2002": "needs_review",
    "C-2003": "needs_review",
    "C-2004": "needs_review",
    "post-31": "done",
    "post-32": "needs_review",
    "post-33": "needs_review",
    "post-34": "needs_review",
}


class Moves:
    """A follower of the ledger that lets a test wait for what the tasks have come to."""

    def __init__(self) -> None:
        self._moved = threading.Condition()

    def __call__(self, tx: Connection, _: Moved) -> None:
        after_commit(tx, self._tell)

    def _tell(self) -> None:
        with self._moved:
            self._moved.notify_all()

    def wait(self, holds: Callable[[], bool]) -> bool:
        with self._moved:
            return self._moved.wait_for(holds, timeout=60)


class DemoBoard:
    def __init__(self, board: Board, url: str, moves: Moves) -> None:
        self.board, self.url, self.moves = board, url, moves

    def statuses(self) -> dict[str, str]:
        with self.board.db.read() as connection:
            rows = connection.execute(select(tasks.c.task_id, tasks.c.status)).all()
        return {_short(row.task_id): str(row.status) for row in rows}

    def result(self, name: str) -> dict[str, Any]:
        query = select(tasks.c.task_id, task_data.c.result).join(task_data, task_data.c.task == tasks.c.id)
        with self.board.db.read() as connection:
            return next(row.result for row in connection.execute(query) if _short(row.task_id) == name)

    def review(self, name: str) -> Any:
        """The open review of a task, or None."""
        query = select(reviews, tasks.c.task_id).join(tasks, tasks.c.id == reviews.c.task)
        with self.board.db.read() as connection:
            rows = connection.execute(query.where(reviews.c.status == "open")).mappings().all()
        return next((row for row in rows if _short(row["task_id"]) == name), None)


def _short(task_id: str) -> str:
    return next(part for part in task_id.split(":") if part.startswith(("L-", "C-", "post-")))


@pytest.fixture
def demo_board(sqlite_url: str, tmp_path: Path) -> Iterator[DemoBoard]:
    """A board with the demo loaded and its consumer at work."""
    handlers = load_handlers() | {handler.name: handler for handler in dify_handlers()}
    settings = Settings(database_url=sqlite_url, data_dir=tmp_path, concurrency=16)
    board = open_board(settings, handlers=lambda: handlers)
    moves = Moves()
    board.ledger.followers.append(moves)
    with serve(Starlette(routes=[Mount("/demo", app=create_app(Pace(run=0.3)))])) as url:
        with board.db.write() as tx:
            for text in samples.catalogue():
                data = parse(text.replace("{{ base }}", f"{url}/demo"), {})
                apply(tx, data, handlers=board.handlers, vault=board.vault, author="demo")
            for body in samples.tasks():
                board.intake.take(tx, TaskIn.model_validate(body), By("system", "demo", "cli"))
        consumer = board.make_consumer()
        consumer.start()
        try:
            yield DemoBoard(board, f"{url}/demo", moves)
        finally:
            consumer.stop()
            board.close()


def test_the_demo_goes_through_the_states(demo_board: DemoBoard) -> None:
    demo_board.moves.wait(lambda: demo_board.statuses() == EXPECTED)
    assert demo_board.statuses() == EXPECTED
    assert {
        name: demo_board.review(name)["reason"] for name in ("L-1005", "L-1006", "C-2004", "post-32", "post-34")
    } == {
        "L-1005": "risk",
        "L-1006": "low_confidence",
        "C-2004": "partial_result",
        "post-32": "output_rule",
        "post-34": "invalid_output",
    }
    assert demo_board.result("L-1009")["label"] == "hot"
    runs = httpx.get(f"{demo_board.url}/_standin/runs").json()["runs"]
    assert len([run for run in runs if "postcards" in run["inputs"]["text"]]) == 1, "the lost run was followed"
    hooks = httpx.get(f"{demo_board.url}/hook/received").json()
    assert (hooks["count"], hooks["distinct"]) == (5, 5)
    assert all(call["signature_valid"] for call in hooks["data"])

    # A reviewer asks for a change, and the next answer follows it.
    before = demo_board.review("C-2003")
    assert "apologise" not in demo_board.result("C-2003")["reply"]
    reviewer = Actor("person", "reviewer@example.org", frozenset(Act), role="reviewer")
    with demo_board.board.db.write() as tx:
        verdict = Verdict("revise", before["version"], before["content_hash"], instruction="Please apologise first.")
        demo_board.board.decisions.decide(tx, before["id"], verdict, reviewer, "web")
    demo_board.moves.wait(lambda: (demo_board.review("C-2003") or {"round": 1})["round"] == 2)
    assert demo_board.review("C-2003")["round"] == 2
    assert "We sincerely apologise" in demo_board.result("C-2003")["reply"]
    (second,) = [
        run for run in httpx.get(f"{demo_board.url}/_standin/runs").json()["runs"] if "former" in run["inputs"]
    ]
    assert second["inputs"]["instruction"] == "Please apologise first."
    assert "We are checking the charge" in second["inputs"]["former"]
