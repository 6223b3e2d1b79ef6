"""One business action, whoever means it: the same key acts once, and everybody sees what became of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from board.effects import journal, operations
from board.effects.models import operation_events
from board.tasks.edit import TaskEdit, apply
from board.tasks.requeue import requeue
from tests.effects.test_actions import POST_KEY, publishing
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import CALLER, OpenWorking, WorkingBoard


def notes(board: WorkingBoard, key: str) -> list[tuple[str, str | None]]:
    """(kind, note) of everything that is kept of the operation."""
    with board.board.db.read() as connection:
        stored = operations.by_key(connection, key)
        assert stored is not None
        return [(row["kind"], row["note"]) for row in journal.entries(connection, stored["id"])]


def publish(board: WorkingBoard, task_id: str, post: int = 31, **payload: Any) -> None:
    board.submit(task_id, type="publish", payload={"post": post, **payload})


def test_the_second_task_takes_the_reference_of_the_first_and_says_whose_it_is(
    working: OpenWorking, receiver: Receiver
) -> None:
    receiver.reply(Reply(headers={"X-Request-Id": "post-77"}))
    board = working()
    publishing(board, receiver.url, action=POST_KEY)
    publish(board, "T-1")
    board.wait("T-1", "done")
    publish(board, "T-2")
    board.wait("T-2", "done")
    assert board.attempts("T-2")[-1]["reference"] == "post-77"
    [event] = [it for it in board.events("T-2") if it["kind"] == "done_before"]
    assert event["note"] == "Task T-1 has done this before (“publish:31:v1”); nothing was sent."
    assert event["data"] == {"operation": str(board.operations("T-1")[0]["id"])}
    assert len(receiver.requests) == 1


def test_another_content_is_refused_on_the_task_and_with_the_operation(
    working: OpenWorking, receiver: Receiver
) -> None:
    board = working()
    publishing(board, receiver.url, action=POST_KEY)
    publish(board, "T-1", text="one")
    board.wait("T-1", "done")
    publish(board, "T-2", text="two")
    task = board.wait("T-2", "failed")
    assert "belongs to task T-1, which has another content; nothing was sent" in task["last_error"]
    assert "operation_refused" in board.kinds("T-2")
    [(kind, note)] = notes(board, "publish:31:v1")
    assert kind == "refused"
    assert note is not None
    assert note.startswith("Task T-2 was refused: ")
    assert len(receiver.requests) == 1


def test_a_loop_of_refusals_does_not_fill_the_database(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    publishing(board, receiver.url, action=POST_KEY)
    publish(board, "T-1", text="one")
    board.wait("T-1", "done")
    operation = board.operations("T-1")[0]["id"]
    with board.board.db.write() as tx:
        for number in range(journal.MOST_REFUSALS + 5):
            journal.refused(tx, operation, CALLER, f"Number {number}.")
    assert len(notes(board, "publish:31:v1")) == journal.MOST_REFUSALS


def test_the_second_waits_while_nobody_knows_and_goes_on_once_a_person_does(
    working: OpenWorking, receiver: Receiver
) -> None:
    """Neither failed nor sent: the outcome of the first decides about the second, and no retry is spent."""
    receiver.reply(Reply(status=500))
    board = working()
    publishing(board, receiver.url, action=POST_KEY)
    publish(board, "T-1")
    board.wait("T-1", "needs_review")
    publish(board, "T-2")
    waiting = board.wait("T-2", "retrying")
    assert (waiting["retry_count"], waiting["reconciling"], waiting["error_class"]) == (0, True, None)
    assert "Whether “publish:31:v1” of task T-1 has happened is unknown" in waiting["last_error"]
    with board.board.db.read() as connection:
        document = board.board.task_document(connection, waiting)
    assert document["waiting_for"]["code"] == "reconciling"
    board.decide("T-1", "happened", reason="It is online.", reference="post-9")
    board.wait("T-2", "done")
    assert "run_now" in board.kinds("T-2"), "woken, and not by its own time"
    assert board.attempts("T-2")[-1]["reference"] == "post-9"
    assert len(receiver.requests) == 1


def test_a_refused_action_whose_task_has_ended_may_be_done_by_another(working: OpenWorking, receiver: Receiver) -> None:
    receiver.reply(Reply(status=422))
    board = working()
    publishing(board, receiver.url, action=POST_KEY)
    publish(board, "T-1", text="worng")
    board.wait("T-1", "failed")
    publish(board, "T-2", text="right")
    board.wait("T-2", "done")
    first, second = receiver.wait_for(2)
    assert json.loads(second.body)["task"]["payload"]["text"] == "right"
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert notes(board, "publish:31:v1") == [("reserved", "Task T-2 took it over from task T-1.")]
    heart = board.board
    with heart.db.write() as tx:
        requeue(tx, heart.ledger, heart.catalogue, board.task("T-1")["id"], CALLER)
    refused = board.wait("T-1", "failed")
    assert "belongs to task T-2, which has another content" in refused["last_error"]
    assert len(receiver.requests) == 2


def test_a_refused_action_that_its_task_will_try_again_is_not_taken_away(
    working: OpenWorking, receiver: Receiver
) -> None:
    receiver.reply(Reply(status=429, headers={"Retry-After": "600"}))
    board = working()
    publishing(board, receiver.url, action=POST_KEY)
    publish(board, "T-1")
    board.wait("T-1", "retrying")
    publish(board, "T-2")
    waiting = board.wait("T-2", "retrying")
    assert "Task T-1 is just doing the same" in waiting["last_error"]
    assert len(receiver.requests) == 1
    board.cancel("T-1")  # nobody will try it again now: the other one may
    board.wait("T-2", "done")
    assert len(receiver.requests) == 2


def test_what_was_sent_and_is_unknown_is_not_sent_with_another_content_even_to_a_receiver_that_drops_repeats(
    working: OpenWorking, receiver: Receiver
) -> None:
    """It would drop the corrected content as a repeat of the first, and say that all is well."""
    receiver.default = Reply(status=500)
    board = working()
    publishing(board, receiver.url, idempotent=True)
    board.submit(type="publish", payload={"text": "one"})
    board.wait("T-1", "needs_review", timeout=20)
    before = len(receiver.requests)
    heart = board.board
    with heart.db.write() as tx:
        row = heart.ledger.lock(tx, board.task()["id"])
        edit = TaskEdit(version=row["version"], payload={"text": "two"})
        apply(tx, heart.ledger, heart.catalogue, heart.files, heart.visits.task_edited, row["id"], edit, CALLER)
    board.cancel("T-1")
    with heart.db.write() as tx:
        requeue(tx, heart.ledger, heart.catalogue, board.task()["id"], CALLER)
    board.until(lambda: len(board.reviews()) == 2)
    assert board.reviews()[-1]["reason"] == "unknown_outcome"
    assert "had another content, and its outcome is unknown" in board.task()["last_error"]
    assert len(receiver.requests) == before


def test_a_task_that_ends_while_its_call_is_out_leaves_an_unknown_outcome(
    working: OpenWorking, receiver: Receiver
) -> None:
    receiver.reply(Reply(hang=True))
    board = working()
    publishing(board, receiver.url)
    board.submit(type="publish")
    receiver.wait_for(1)
    board.cancel("T-1")
    board.wait("T-1", "cancelled")
    [operation] = board.operations()
    assert (operation["status"], operation["harmless"]) == ("unknown", False)
    assert operation["last_error"] == "The task was cancelled while the call was out."


def test_a_key_that_nobody_could_read_is_refused(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    publishing(board, receiver.url, action={"operation_key": "publish:{{ payload.text }}"})
    board.submit(type="publish", payload={"text": "x" * 600})
    task = board.wait("T-1", "failed")
    assert "has 608 characters; at most 500 are allowed" in task["last_error"]
    assert receiver.requests == []


@pytest.mark.parametrize("status", [200, 422])
def test_a_call_that_simply_works_or_is_refused_leaves_no_entry(
    working_sqlite: OpenWorking, receiver: Receiver, status: int
) -> None:
    """What every task does must cost one row, not three."""
    receiver.default = Reply(status=status)
    board = working_sqlite()
    publishing(board, receiver.url)
    board.submit(type="publish")
    board.wait("T-1", "done", "failed")
    with board.board.db.read() as connection:
        assert connection.execute(operation_events.select()).first() is None
