"""The archive while others are at work: what changes under its hands, stops, and a second one."""

import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert

from board.tasks.bodies import TaskIn
from board.tasks.models import retired_ids
from board.tasks.requeue import requeue
from board.upkeep import archive as archiving
from board.upkeep.archive import Archive
from board.upkeep.shelf import Busy, Shelf
from tests.heart import OPERATOR, new_task
from tests.rig.working import CALLER, OpenWorking, WorkingBoard
from tests.upkeep.archived import DAY, archive, archived_ids, end, on_board, operation


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    board = working(start=False)
    board.type("trial", use="echo")
    return board


class Between(Shelf):
    """Does something after the lines were read and written, before the tasks are removed."""

    def __init__(self, folder: Path, act: Any) -> None:
        super().__init__(folder)
        self._act = act

    def put(self, *arguments: Any) -> Path:
        part = super().put(*arguments)
        self._act()
        return part


def test_what_changes_while_it_is_written_stays_on_the_board(board: WorkingBoard) -> None:
    for number in range(4):
        end(board, f"T-{number}", "cancelled")
    board.at(31 * DAY)

    def meanwhile() -> None:
        db = board.board.db
        with db.write() as tx:
            requeue(tx, board.board.ledger, board.board.catalogue, board.task("T-0")["id"], OPERATOR)
            board.board.intake.take(tx, TaskIn(type="trial", task_id="T-1", payload={"other": 1}), CALLER)
        operation(board, board.task("T-2")["id"], "reserved")

    shelf = Between(board.board.archive.shelf.folder, meanwhile)
    tally = Archive(board.board.db, board.board.catalogue, board.board.task_documents, shelf, 0).run()
    assert tally.archived.total() == 1
    assert archived_ids(board) == ["T-3"]
    assert {"T-0", "T-1", "T-2"} == on_board(board)
    assert board.task("T-0")["status"] == "pending"


def test_nothing_of_a_batch_is_left_where_all_of_it_changed(board: WorkingBoard) -> None:
    end(board, "T-1", "cancelled")
    board.at(31 * DAY)

    def meanwhile() -> None:
        with board.board.db.write() as tx:
            requeue(tx, board.board.ledger, board.board.catalogue, board.task()["id"], OPERATOR)

    shelf = Between(board.board.archive.shelf.folder, meanwhile)
    Archive(board.board.db, board.board.catalogue, board.board.task_documents, shelf, 0).run()
    assert list(shelf.folder.glob("*.gz")) == []
    assert board.task()["status"] == "pending"


def test_an_id_is_not_made_anew_while_its_task_is_being_archived(board: WorkingBoard) -> None:
    """The same IDs are sent in all the time while their tasks go: not one is made a second time."""
    ids = [f"T-{number}" for number in range(60)]
    for task_id in ids:
        end(board, task_id, "cancelled")
    board.at(31 * DAY)
    made: list[str] = []
    over = threading.Event()

    def send_in() -> None:
        while not over.is_set():
            for task_id in ids:
                with board.board.db.write() as tx:
                    if board.board.intake.take(tx, TaskIn(type="trial", task_id=task_id), CALLER).created:
                        made.append(task_id)

    sender = threading.Thread(target=send_in)
    sender.start()
    try:
        for _ in range(3):
            archive(board).run()
    finally:
        over.set()
        sender.join()
    archive(board).run()
    assert made == []
    assert archived_ids(board) == sorted(ids)
    assert on_board(board) == set()


def test_an_id_that_was_archived_since_it_was_looked_for_is_not_made(board: WorkingBoard) -> None:
    """The ledger itself asks, whatever its caller has found out before."""
    with board.board.db.write() as tx:
        tx.execute(insert(retired_ids).values(task_id="T-1", status="done", retired_at=func.board_now()))
        made = board.board.ledger.create(tx, [new_task("T-1"), new_task("T-2")], CALLER)
    assert list(made) == ["T-2"]
    assert on_board(board) == {"T-2"}


def test_large_tasks_go_in_small_batches(board: WorkingBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "MOST_TEXT", 1000)
    monkeypatch.setattr(archiving, "BATCH", 4)
    for number in range(10):
        end(board, f"T-{number}", "cancelled", payload={"text": "x" * (2000 if number == 1 else 300)})
    board.at(31 * DAY)
    written: list[int] = []

    class Counting(Shelf):
        def put(self, day: Any, lines: Any) -> Path:
            written.append(len(lines))
            return super().put(day, lines)

    shelf = Counting(board.board.archive.shelf.folder)
    Archive(board.board.db, board.board.catalogue, board.board.task_documents, shelf, 0).run()
    assert written == [1, 1, 2, 3, 1, 2]
    assert archived_ids(board) == [f"T-{number}" for number in range(10)]


def test_it_stops_between_batches_when_it_is_told(board: WorkingBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "BATCH", 2)
    for number in range(6):
        end(board, f"T-{number}", "cancelled")
    board.at(31 * DAY)
    asked = iter([True, True, False])
    assert archive(board).run(lambda: next(asked)).archived.total() == 4
    assert archived_ids(board) == ["T-0", "T-1", "T-2", "T-3"]
    assert on_board(board) == {"T-4", "T-5"}


def test_only_one_process_archives_into_a_folder(board: WorkingBoard) -> None:
    end(board, "T-1")
    board.at(31 * DAY)
    with board.board.archive.shelf.locked(), pytest.raises(Busy, match="Another process"):
        archive(board).run()
    assert archive(board).run().archived.total() == 1


def test_the_leader_archives(working: OpenWorking) -> None:
    board = working(start=False)
    board.type("trial", use="echo")
    end(board, "T-1")
    board.at(31 * DAY)
    keeper = board.board.make_consumer()._keeper
    (chore,) = [it for it in keeper.chores if it.what == "archive old tasks"]
    assert chore.alone
    keeper.do(chore)
    assert on_board(board) == {"T-1"}, "it does not lead yet"
    keeper.do(keeper.chores[0])
    keeper.do(chore)
    assert archived_ids(board) == ["T-1"]
