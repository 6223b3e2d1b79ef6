"""What was told to a caller, and what was said to the database meanwhile."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event

from tests.rig.receiver import Receiver
from tests.rig.working import WorkingBoard

DAY = 86400.0


def echo(board: WorkingBoard, **parts: Any) -> None:
    board.type("echo", use="echo", **parts)


def events(receiver: Receiver) -> list[str]:
    return [json.loads(request.body)["event"] for request in receiver.requests]


def confirmed(board: WorkingBoard, task_id: str = "T-1") -> None:
    board.until(lambda: all(it["status"] == "confirmed" for it in board.operations(task_id)))


@contextmanager
def statements() -> Iterator[list[str]]:
    """What is said to the database meanwhile."""
    said: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        said.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield said
    finally:
        event.remove(Engine, "before_cursor_execute", note)
