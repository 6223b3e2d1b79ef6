"""Old tasks leave the tables for the archive's files, and nothing is lost on the way; on both databases."""

import gzip
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from board.effects.models import deliveries, operations
from board.effects.operations import Delivered, Wanted, close, log_deliveries, send
from board.ports import AlreadyConfirmed
from board.review.models import reviews
from board.tasks.acknowledge import acknowledge
from board.tasks.bodies import TaskIn
from board.tasks.intake import Duplicate
from board.tasks.ledger import Lease, find, retired
from board.tasks.models import attempts, retired_ids, task_data, task_events, tasks
from board.tasks.requeue import requeue
from board.tasks.states import IllegalMove, Move
from board.upkeep import archive as archiving
from board.upkeep.archive import Archive, Tally
from board.upkeep.shelf import Busy, Shelf
from board.worker.models import claims
from tests.heart import OPERATOR, WORKER, claim_lane, new_task
from tests.rig.working import CALLER, OpenWorking, WorkingBoard

DAY = 86_400.0
ENDS = {"done": Move.SUCCEED, "failed": Move.FAIL, "needs_review": Move.ASK}


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    board = working(start=False)
    board.type("trial", use="echo")
    return board


def archive(board: WorkingBoard) -> Archive:
    return Archive(board.board.db, board.board.catalogue, board.board.task_documents, board.board.archive.shelf, 0)


def end(board: WorkingBoard, task_id: str, status: str = "done", **body: Any) -> int:
    """A task that ended so; its internal id."""
    board.submit(task_id, **body)
    if status == "cancelled":
        board.cancel(task_id)
    elif status in ENDS:
        with board.board.db.write() as tx:
            (row,) = claim_lane(tx, board.board.ledger, limit=1)
            assert row["task_id"] == task_id
            details = {"reason": "policy"} if status == "needs_review" else None
            lease = Lease(row["id"], row["lease_token"])
            assert board.board.ledger.settle(tx, lease, ENDS[status], WORKER, details=details)
    assert board.task(task_id)["status"] == status
    return int(board.task(task_id)["id"])


def records(board: WorkingBoard) -> list[dict[str, Any]]:
    """All lines of the archive, as `zcat archive/*.jsonl.gz` shows them."""
    files = sorted(board.board.archive.shelf.folder.glob("*.jsonl.gz"))
    return [json.loads(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]


def archived_ids(board: WorkingBoard) -> list[str]:
    return sorted(record["task"]["task_id"] for record in records(board))


def on_board(board: WorkingBoard) -> set[str]:
    with board.board.db.read() as connection:
        return set(connection.execute(select(tasks.c.task_id)).scalars())


def acknowledged(board: WorkingBoard, task_id: str) -> None:
    with board.board.db.write() as tx:
        acknowledge(tx, board.board.ledger, board.task(task_id)["id"], OPERATOR, "Seen.")


def test_what_ended_goes_after_its_retention_and_what_has_not_ended_stays(board: WorkingBoard) -> None:
    for status in ("done", "cancelled", "failed", "needs_review", "pending"):
        end(board, f"T-{status}", status)
    acknowledged(board, "T-failed")
    board.at(30 * DAY - 60)
    assert archive(board).run() == Tally()
    board.at(30 * DAY + 60)
    before = archive(board).preview()
    assert on_board(board) == {"T-done", "T-cancelled", "T-failed", "T-needs_review", "T-pending"}
    tally = archive(board).run()
    assert tally == before
    assert dict(tally.archived) == {("trial", "done"): 1, ("trial", "cancelled"): 1, ("trial", "failed"): 1}
    assert on_board(board) == {"T-needs_review", "T-pending"}
    assert archived_ids(board) == ["T-cancelled", "T-done", "T-failed"]
    board.at(3000 * DAY)
    assert archive(board).run() == Tally()
    assert on_board(board) == {"T-needs_review", "T-pending"}


def test_each_type_has_its_own_retention(board: WorkingBoard) -> None:
    board.type("short", use="echo", retention="2h")
    board.type("for-ever", use="echo", retention="forever")
    for name in ("trial", "short", "for-ever"):
        end(board, f"T-{name}", type=name)
    board.at(7_200 + 60)
    archive(board).run()
    assert archived_ids(board) == ["T-short"]
    board.type("trial", use="echo", retention="1d")  # what counts is what the type says now
    board.at(DAY + 60)
    archive(board).run()
    assert archived_ids(board) == ["T-short", "T-trial"]
    board.at(36_500 * DAY)
    archive(board).run()
    assert on_board(board) == {"T-for-ever"}


def test_a_task_that_lived_long_keeps_its_time_after_the_end(board: WorkingBoard) -> None:
    board.submit("T-long")
    board.at(40 * DAY)
    with board.board.db.write() as tx:
        (row,) = claim_lane(tx, board.board.ledger, limit=1)
        assert board.board.ledger.settle(tx, Lease(row["id"], row["lease_token"]), Move.SUCCEED, WORKER)
    end(board, "T-young")
    board.at(69 * DAY)
    assert archive(board).run() == Tally()
    board.at(71 * DAY)
    archive(board).run()
    assert archived_ids(board) == ["T-long", "T-young"]


# -- what stays -------------------------------------------------------------------------------------------------


def test_a_failed_task_stays_until_somebody_has_acknowledged_it(board: WorkingBoard) -> None:
    end(board, "T-1", "failed")
    board.at(400 * DAY)
    assert dict(archive(board).run().kept) == {"not_acknowledged": 1}
    acknowledged(board, "T-1")
    acknowledged(board, "T-1")
    task = board.task()
    assert (task["status"], board.kinds()) == ("failed", ["created", "started", "failed", "acknowledged"])
    event = board.events()[-1]
    assert (event["from_status"], event["to_status"], event["actor_name"], event["note"]) == (
        None,
        None,
        "li@example.org",
        "Seen.",
    )
    archive(board).run()
    assert archived_ids(board) == ["T-1"]


def test_a_requeue_takes_the_acknowledgement_back(board: WorkingBoard) -> None:
    end(board, "T-1", "failed")
    acknowledged(board, "T-1")
    with board.board.db.write() as tx:
        requeue(tx, board.board.ledger, board.board.catalogue, board.task()["id"], OPERATOR)
    assert board.task()["acknowledged_at"] is None
    with board.board.db.write() as tx:
        (row,) = claim_lane(tx, board.board.ledger, limit=1)
        assert board.board.ledger.settle(tx, Lease(row["id"], row["lease_token"]), Move.FAIL, WORKER)
    board.at(400 * DAY)
    assert dict(archive(board).run().kept) == {"not_acknowledged": 1}


@pytest.mark.parametrize("status", ["done", "pending", "needs_review", "cancelled"])
def test_only_a_failure_can_be_acknowledged(board: WorkingBoard, status: str) -> None:
    end(board, "T-1", status)
    with pytest.raises(IllegalMove, match=f"A task that is {status} cannot be acknowledged."):
        acknowledged(board, "T-1")


def operation(board: WorkingBoard, task: int, status: str, **more: Any) -> int:
    row = {"key": f"pay:{task}", "task": task, "task_id": "T-1", "kind": "webhook.action", "target": "the bank"}
    row |= {"request_hash": "h", "body": "{}", "url": "https://bank.example.org", "status": status, "lease_token": 1}
    row |= {"tries": 1, "created_at": board.task()["created_at"]} | more
    with board.board.db.write() as tx:
        made = int(tx.execute(insert(operations).values(**row).returning(operations.c.id)).scalar_one())
        log_deliveries(tx, [Delivered(made, 5, 200, status[:12], "ok")])
    return made


@pytest.mark.parametrize("status", ["reserved", "sent", "unknown"])
def test_a_call_that_is_not_closed_keeps_its_task(board: WorkingBoard, status: str) -> None:
    made = operation(board, end(board, "T-1"), status)
    board.at(400 * DAY)
    assert dict(archive(board).run().kept) == {"open_operation": 1}
    with board.board.db.write() as tx:
        close(tx, made, "confirmed")
    assert archive(board).run().archived.total() == 1


def test_an_open_review_keeps_its_task(board: WorkingBoard) -> None:
    task = end(board, "T-1", "needs_review")
    with board.board.db.write() as tx:  # no move leads here; the archive does not rely on that
        tx.execute(tasks.update().values(status="done", finished_at=tasks.c.created_at))
    board.at(400 * DAY)
    assert dict(archive(board).run().kept) == {"open_review": 1}
    with board.board.db.write() as tx:
        tx.execute(reviews.update().where(reviews.c.task == task).values(status="closed"))
    assert archive(board).run().archived.total() == 1


# -- what goes where ----------------------------------------------------------------------------------------------


def test_the_archive_holds_all_of_a_task_and_the_tables_nothing_but_its_operations(board: WorkingBoard) -> None:
    task = end(board, "T-1", "needs_review", payload={"n": 2**80, "text": "你好"}, title="第一", tags=["a"])
    board.decide("T-1", "reject", reason="No.", reason_class="wrong")
    made = operation(board, task, "confirmed", external_reference="bank-7")
    with board.board.db.write() as tx:
        values = {"task": task, "number": 1, "owner": "key:n8n", "worker": "w", "type": "trial", "lease": 60.0}
        tx.execute(insert(claims).values(made_at=board.task()["created_at"], **values))
    moment = board.task()["finished_at"]
    board.at(31 * DAY)
    archive(board).run()
    (record,) = records(board)
    assert record["task"] | {"payload": None} == record["task"] | {
        "payload": None,
        "task_id": "T-1",
        "status": "cancelled",
        "title": "第一",
        "tags": ["a"],
        "finished_at": moment.isoformat().replace("+00:00", "Z"),
    }
    assert record["task"]["payload"] == {"n": 2**80, "text": "你好"}
    assert [event["kind"] for event in record["events"]] == ["created", "started", "review_asked", "rejected"]
    assert [attempt["worker"] for attempt in record["attempts"]] == ["w1"]
    assert (record["reviews"][0]["decision"]["by"], record["reviews"][0]["reason"]) == ("key:li", "policy")
    assert record["operations"][0]["external_reference"] == "bank-7"
    with board.board.db.read() as connection:
        for table in (tasks, task_data, task_events, attempts, reviews, claims, deliveries):
            assert connection.execute(select(func.count()).select_from(table)).scalar_one() == 0, table.name
        (row,) = connection.execute(select(operations)).mappings()
        gone = retired(connection, "T-1")
    assert (row["id"], row["key"], row["task"], row["task_id"]) == (made, f"pay:{task}", None, "T-1")
    assert (row["status"], row["external_reference"], row["body"], row["url"]) == ("confirmed", "bank-7", None, None)
    assert gone is not None
    assert (gone["status"], str(gone["retired_at"].date())) == ("cancelled", day_of(board))


def day_of(board: WorkingBoard) -> str:
    (file,) = board.board.archive.shelf.folder.glob("*.jsonl.gz")
    return file.name.removesuffix(".jsonl.gz")


def test_the_key_of_an_operation_is_never_free_again(board: WorkingBoard) -> None:
    task = end(board, "T-1")
    operation(board, task, "confirmed", external_reference="bank-7")
    board.at(31 * DAY)
    archive(board).run()
    board.submit("T-2")
    with board.board.db.write() as tx:
        (row,) = claim_lane(tx, board.board.ledger, limit=1)
    wanted = Wanted(f"pay:{task}", "webhook.action", "the bank", b"{}", b"{}", None, fixed=False, resend=True)
    with board.board.db.write() as tx, pytest.raises(AlreadyConfirmed) as known:
        send(tx, row, Lease(row["id"], row["lease_token"]), wanted)
    assert known.value.reference == "bank-7"


def test_an_id_stays_taken_for_ever(board: WorkingBoard) -> None:
    end(board, "T-1", "failed", payload={"n": 1})
    acknowledged(board, "T-1")
    board.at(31 * DAY)
    archive(board).run()
    for more in ({}, {"payload": {"n": 2}}, {"on_duplicate": "requeue"}):
        with board.board.db.write() as tx:
            taken = board.board.intake.take(tx, TaskIn(type="trial", task_id=" T-1", **more), CALLER)
        assert (taken.created, taken.archived_status, taken.payload_differs) == (False, "failed", False)
    with board.board.db.write() as tx, pytest.raises(Duplicate):
        board.board.intake.take(tx, TaskIn(type="trial", task_id="T-1", on_duplicate="reject"), CALLER)
    assert on_board(board) == set()
    made = end(board, "T-2")
    with board.board.db.read() as connection:
        assert connection.execute(select(func.count()).select_from(task_events)).scalar_one() == 3
        assert find(connection, "T-2")["id"] == made  # type: ignore[index]


# -- while others are at work -------------------------------------------------------------------------------------


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
