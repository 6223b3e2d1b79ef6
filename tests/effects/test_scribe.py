"""What a caller is told is how his task was when it moved, however late it is written out, and whoever does that."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from board.db.clock import read_now
from board.effects import scribe
from board.effects.models import untold
from board.ports import Cause, ErrorClass, Failure, Outcome, Success
from board.signals.signal import Call
from board.tasks.acknowledge import acknowledge
from board.tasks.edit import TaskEdit
from board.tasks.edit import apply as edit
from board.tasks.history import By
from board.tasks.ledger import Lease
from board.tasks.requeue import requeue
from board.upkeep import ageing
from board.worker.ending import Ended
from board.worker.endings import Endings
from tests.effects.told import statements
from tests.heart import claim
from tests.rig.receiver import Receiver
from tests.rig.working import CALLER, OpenWorking, WorkingBoard

BY = By("worker", "w1", "worker")
URL = "http://127.0.0.1:9/hook"  # nobody is called here: no sender runs
EVERY = {"events": ["needs_review", "done", "failed", "cancelled"]}
BROKEN = Failure(ErrorClass.PERMANENT, Cause.BAD_OUTPUT, "Broken.")


def end(board: WorkingBoard, outcome: Outcome, number: int = 1) -> None:
    """Claim what waits and end it so, in one commit."""
    heart = board.board
    rows = claim(heart.db, heart.ledger, limit=number)
    ended = [Ended(row, Lease(row["id"], row["lease_token"]), BY, outcome) for row in rows]
    assert Endings(heart.db, heart.ledger, heart.catalogue).write(ended) == [None] * number


def notes(board: WorkingBoard) -> int:
    with board.board.db.read() as connection:
        return connection.execute(select(func.count()).select_from(untold)).scalar_one()


def document(board: WorkingBoard, task_id: str = "T-1") -> dict[str, Any]:
    with board.board.db.read() as connection:
        made = board.board.task_document(connection, board.task(task_id))
    return dict(json.loads(json.dumps(made, default=str)))


def edited(board: WorkingBoard, **given: Any) -> None:
    task, heart = board.task(), board.board
    with heart.db.write() as tx:
        body = TaskEdit(version=task["version"], **given)
        edit(tx, heart.ledger, heart.catalogue, heart.files, heart.visits.task_edited, task["id"], body, CALLER)


def requeued(board: WorkingBoard) -> None:
    with board.board.db.write() as tx:
        requeue(tx, board.board.ledger, board.board.catalogue, board.task()["id"], CALLER)


def seen(board: WorkingBoard) -> None:
    with board.board.db.write() as tx:
        acknowledge(tx, board.board.ledger, board.task()["id"], CALLER)


def late(board: WorkingBoard) -> None:
    board.at(120)
    assert ageing.mark_missed(board.board.db, board.board.ledger) == 1


CHANGES: dict[str, tuple[str, Outcome, Callable[[WorkingBoard], object]]] = {
    "approved": ("always", Success(result={"n": 1}), lambda board: board.decide("T-1", "approve")),
    "rejected": ("always", Success(result={"n": 1}), lambda board: board.decide("T-1", "reject", reason="No.")),
    "sent back": (
        "always",
        Success(result={"n": 1}),
        lambda board: board.decide("T-1", "revise", instruction="Better."),
    ),
    "cancelled": ("always", Success(result={"n": 1}), lambda board: board.cancel("T-1")),
    "corrected": ("always", Success(result={"n": 1}), lambda board: edited(board, payload={"n": 2}, title="Other")),
    "too late": ("always", Success(result={"n": 1}), late),
    "noted on": ("never", Success(result={"n": 1}), lambda board: edited(board, note="Paid twice.")),
    "failed, then put back": ("never", BROKEN, requeued),
    "failed, then seen": ("never", BROKEN, seen),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_call_says_how_the_task_was_when_it_moved(working: OpenWorking, change: str) -> None:
    """No worker was there to write it out before somebody changed the task."""
    when, outcome, changing = CHANGES[change]
    board = working(start=False)
    board.type("echo", use="echo", review={"when": when, "grace": "0s"}, callback=EVERY)
    with board.board.db.read() as connection:
        deadline = (read_now(connection) + timedelta(seconds=60)).isoformat()
    board.submit(type="echo", payload={"n": 1}, callback_url=URL, deadline_at=deadline)
    end(board, outcome)
    was, seq = document(board), board.task()["event_seq"]
    assert notes(board) == 1
    changing(board)
    assert document(board) != was
    told = board.operations()[0]
    body = json.loads(told["body"])
    assert body["task"] == was
    assert (body["event"], body["seq"], body["at"]) == (f"task.{was['status']}", seq, was["updated_at"])
    assert (told["key"], told["tries"], told["status"]) == (f"callback:T-1:{seq}", 0, "reserved")
    assert notes(board) == 0


def test_many_ends_are_noted_in_one_statement(working: OpenWorking) -> None:
    board = working(start=False)
    board.type("echo", use="echo", review={"when": "never"})
    said = {}
    for name, url in (("warm", None), ("quiet", None), ("told", URL)):
        for n in range(20):
            board.submit(f"{name}-{n}", type="echo", callback_url=url)
        with statements() as found:
            end(board, Success(result={}), 20)
        said[name] = len(found)
    assert said["told"] == said["quiet"] + 1
    assert notes(board) == 20


def test_the_scribe_leaves_a_task_that_somebody_holds_to_him(working: OpenWorking) -> None:
    """Two who lock in another order would wait for each other for ever; and who holds a task writes it out himself."""
    board = working(start=False)
    board.type("echo", use="echo", review={"when": "never"})
    board.submit("T-1", type="echo", callback_url=URL)
    board.submit("T-2", type="echo", callback_url=URL)
    end(board, Success(result={}), 2)
    db = board.board.db
    if db.is_sqlite:
        with db.write() as tx:
            board.board.ledger.lock(tx, board.task("T-1")["id"])
            assert tx.execute(select(untold.c.task)).scalars().all() == [board.task("T-2")["id"]]
        return
    with db.write() as holding:
        board.board.ledger.lock(holding, board.task("T-1")["id"])
        with db.write() as tx:
            assert board.board.scribe.write_some(tx) is False
        assert notes(board) == 1
    assert notes(board) == 0
    assert [len(board.operations(name)) for name in ("T-1", "T-2")] == [1, 1]


def test_what_is_noted_is_not_archived(working: OpenWorking) -> None:
    board = working(start=False)
    board.type("echo", use="echo", review={"when": "never"}, retention="1d")
    board.submit("T-1", type="echo", callback_url=URL)
    board.submit("T-2", type="echo")
    end(board, Success(result={}), 2)
    board.at(2 * 86400)
    board.board.archive.run()
    assert board.task("T-1")["status"] == "done"
    assert notes(board) == 1


def test_an_undone_decision_leaves_no_word(working: OpenWorking) -> None:
    board = working(start=False)
    board.type(
        "echo",
        use="echo",
        review={"when": "always", "grace": "60s"},
        callback={"events": ["needs_review", "cancelled"]},
    )
    board.submit(type="echo", callback_url=URL)
    end(board, Success(result={}))
    board.decide("T-1", "reject")
    assert notes(board) == 1
    board.undo("T-1")
    assert notes(board) == 0
    assert [json.loads(it["body"])["event"] for it in board.operations()] == ["task.needs_review"]


def test_a_note_whose_task_is_gone_is_in_nobodys_way(
    working: OpenWorking, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scribe, "BATCH", 2)
    scribe._noted.cache_clear()
    board = working(start=False)
    board.type("echo", use="echo", review={"when": "never"})
    with board.board.db.write() as tx:
        tx.execute(insert(untold), [{"task": -n, "seq": 1} for n in range(1, 5)])
    for n in range(5):
        board.submit(f"T-{n}", type="echo", callback_url=f"{receiver.url}/{n}")
    end(board, Success(result={}), 5)
    board.start()
    assert sorted(request.path for request in receiver.wait_for(5)) == [f"/{n}" for n in range(5)]
    scribe._noted.cache_clear()


def test_who_writes_it_out_himself_wakes_the_sender(working: OpenWorking) -> None:
    board = working(start=False)
    board.type("echo", use="echo", review={"when": "never"})
    board.submit(type="echo", callback_url=URL)
    end(board, Success(result={}))
    heard: list[str] = []
    board.board.signals.on(Call.OUTBOX, lambda: heard.append("outbox"))
    for expected in (["outbox"], ["outbox"]):  # the second time there is nothing to write out
        board.operations()
        assert heard == expected
