"""The order of the inbox stands in its rows, and follows whatever changes it."""

from sqlalchemy import update

from board.access.rights import key_actor
from board.review import read
from board.review.models import reviews
from board.tasks.edit import TaskEdit
from board.tasks.edit import apply as edit
from tests.rig.working import CALLER, OpenWorking, WorkingBoard


def order(board: WorkingBoard) -> list[str]:
    with board.board.db.read() as connection:
        return [row["task_id"] for row in read.inbox(connection).rows]


def prioritise(board: WorkingBoard, task_id: str, priority: str) -> None:
    task = board.task(task_id)
    change = TaskEdit(version=task["version"], priority=priority)
    rooms = board.board
    with rooms.db.write() as tx:
        edit(tx, rooms.ledger, rooms.catalogue, rooms.files, rooms.visits.task_edited, task["id"], change, CALLER)


def test_due_then_risk_then_priority_then_age(working: OpenWorking) -> None:
    board = working()
    board.type("plain", "echo", review={"when": "always", "grace": "1m"})
    board.type("due", "echo", review={"when": "always", "due": "4h"})
    board.type("risky", "echo", review={"when": "always", "risk": "high"})
    for task_id, type, priority in (
        ("old", "plain", "P2"),
        ("risky", "risky", "P3"),
        ("due", "due", "P3"),
        ("urgent", "plain", "P1"),
        ("new", "plain", "P2"),
    ):
        board.submit(task_id, type, priority=priority)
        board.wait(task_id, "needs_review")
    assert order(board) == ["due", "risky", "urgent", "old", "new"]
    review = board.reviews("new")[-1]
    prioritise(board, "new", "P0")
    assert order(board) == ["due", "risky", "new", "urgent", "old"]
    assert board.reviews("new")[-1]["version"] == review["version"], "what is decided about is the same"
    with board.board.db.write() as tx:
        tx.execute(update(reviews).where(reviews.c.id == review["id"]).values(risk="high"))
    assert order(board) == ["due", "new", "risky", "urgent", "old"]


def test_what_is_undone_stands_where_it_stood(working: OpenWorking) -> None:
    board = working()
    board.type("plain", "echo", review={"when": "always", "grace": "1m"})
    for task_id in ("T-1", "T-2"):
        board.submit(task_id, "plain")
        board.wait(task_id, "needs_review")
    board.decide("T-1", "approve", key_actor("li", ["review"]))
    assert order(board) == ["T-2"]
    board.undo("T-1", key_actor("li", ["review"]))
    assert order(board) == ["T-1", "T-2"]
