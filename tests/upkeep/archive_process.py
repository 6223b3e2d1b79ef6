"""Archives again and again, killed by SIGKILL one step later each time, and checks after each death what is left.

A step is whatever changes a file or the database. `archive_process.py DATABASE_URL DATA_DIR` prints the number of
deaths. Each death is that of a forked process: a start of Python each time would take a minute.
"""

import gzip
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import event, select

from board import settings
from board.catalogue.apply import apply
from board.rooms import Board, open_board
from board.tasks.bodies import TaskIn
from board.tasks.history import By
from board.tasks.models import retired_ids, task_data, task_events, tasks
from board.upkeep import archive as archiving

CALLER = By("key", "n8n", "api")
TASKS = 3  # put in before each death
archiving.BATCH = 2  # two batches
archiving.PAUSE = 0.0


class Steps:
    """Kills this process before the given step."""

    def __init__(self, last: int) -> None:
        self._left = last

    def count(self, *_: Any) -> None:
        self._left -= 1
        if self._left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, board: Board) -> None:
        for name in ("fsync", "replace", "unlink"):
            setattr(os, name, self._counted(getattr(os, name)))
        event.listen(board.db._writer, "commit", self.count)

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.count()
            return real(*arguments, **named)

        return counted


def opened(url: str, folder: Path) -> Board:
    return open_board(settings.load(database_url=url, data_dir=folder))


def put_in(board: Board, names: list[str]) -> None:
    """Cancelled tasks whose time is over."""
    with board.db.write() as tx:
        for name in names:
            board.intake.take(tx, TaskIn(type="trial", task_id=name), CALLER)
            row = tx.execute(select(tasks).where(tasks.c.task_id == name)).mappings().one()
            board.ledger.cancel(tx, row, CALLER, None)
        long_ago = row["created_at"].replace(year=2001)
        tx.execute(tasks.update().values(created_at=long_ago, finished_at=long_ago))


def look(board: Board, folder: Path) -> tuple[set[str], set[str], Counter[str]]:
    """(tasks on the board, retired IDs, how often each task stands in the archive)"""
    archived: Counter[str] = Counter()
    for file in (folder / "archive").glob("*.jsonl.gz"):
        with gzip.open(file) as lines:
            for line in lines:
                record = json.loads(line)
                assert [it["kind"] for it in record["events"]] == ["created", "cancelled"]
                archived[record["task"]["task_id"]] += 1
    with board.db.read() as connection:
        here = set(connection.execute(select(tasks.c.task_id)).scalars())
        gone = set(connection.execute(select(retired_ids.c.task_id)).scalars())
        for table in (task_data, task_events):  # nothing stays behind, and nothing is missing
            whose = set(connection.execute(select(table.c.task)).scalars())
            assert whose == set(connection.execute(select(tasks.c.id)).scalars()), table.name
    return here, gone, archived


def death(url: str, folder: Path, last: int) -> bool:
    """Whether a process that archives died before this step; False: it had come to its end before."""
    child = os.fork()
    if child == 0:
        try:
            board = opened(url, folder)
            Steps(last).watch(board)
            board.archive.run()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


def main(url: str, folder: Path) -> None:
    board = opened(url, folder)
    with board.db.write() as tx:
        type_ = {"name": "trial", "handler": {"use": "echo"}}
        apply(tx, {"types": [type_]}, handlers=board.handlers, vault=board.vault, author="key:test")
    every: set[str] = set()
    deaths = 0
    died = True
    while died:
        names = [f"T-{deaths}-{number}" for number in range(TASKS)]
        put_in(board, names)
        every.update(names)
        board.close()  # nothing of it may be shared with the process to come
        died = death(url, folder, deaths)
        board = opened(url, folder)
        here, gone, archived = look(board, folder)
        assert here | gone == every, "every task is on the board or retired"
        assert not here & gone, "no task is both"
        assert gone <= archived.keys(), "what is retired stands in the archive"
        board.archive.run()
        here, gone, archived = look(board, folder)
        assert here == set()
        assert gone == every == archived.keys()
        assert max(archived.values()) <= 2, "at worst a task stands twice"
        assert len(list((folder / "archive").glob("*.part-*"))) == 0
        deaths += died
    print(deaths)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
