"""`board up --demo`: sample types and tasks, and a stand-in for Dify that answers on the board's own address."""

from __future__ import annotations

from importlib.metadata import entry_points

from fastapi import FastAPI

from board.access.rights import CONSOLE
from board.catalogue.apply import apply, parse
from board.ports import Demo
from board.rooms import Board
from board.tasks.intake import TaskIn

GROUP = "board.demo"


def load() -> list[Demo]:
    """What the installed packages bring for a demo."""
    return [point.load()() for point in entry_points(group=GROUP)]


def mount(app: FastAPI, demos: list[Demo]) -> None:
    for demo in demos:
        app.mount(demo.mount, demo.app)


def fill(board: Board, demos: list[Demo], address: str) -> None:
    """Apply the sample types and put the sample tasks in; at a second start all of it is there already.

    address: where this very process answers, such as http://127.0.0.1:8000.
    """
    by = CONSOLE.by("cli")
    with board.db.write() as tx:
        for demo in demos:
            for text in demo.catalogue:
                data = parse(text.replace("{{ base }}", f"{address}{demo.mount}"))
                apply(tx, data, handlers=board.handlers, vault=board.vault, author=CONSOLE.identity)
        for demo in demos:
            for body in demo.tasks:
                board.intake.take(tx, TaskIn.model_validate(body), by)
