"""Old tasks leave the tables for the archive's files, and nothing is lost on the way; on both databases."""

import pytest
from sqlalchemy import func, insert, select

from board.effects.models import deliveries, operations
from board.effects.operations import Wanted, close, send
from board.ports import AlreadyConfirmed
from board.review.models import reviews
from board.tasks.bodies import TaskIn
from board.tasks.intake import Duplicate
from board.tasks.ledger import Lease, find, retired
from board.tasks.models import attempts, task_data, task_events, tasks
from board.tasks.requeue import requeue
from board.tasks.states import IllegalMove, Move
from board.upkeep.archive import Tally
from board.worker.models import claims
from tests.heart import OPERATOR, WORKER, claim_lane
from tests.rig.working import CALLER, OpenWorking, WorkingBoard
from tests.upkeep.archived import DAY, acknowledged, archive, archived_ids, end, on_board, operation, records


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    board = working(start=False)
    board.type("trial", use="echo")
    return board


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
