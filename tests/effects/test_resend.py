"""A callback that somebody sends again: the same id and bytes, an event with who, and honest about its age."""

import json
import threading

import pytest
from sqlalchemy import text

from board.access.rights import Forbidden, key_actor
from board.effects import scribe
from board.effects.resend import NotResendable, resend
from board.effects.steps import NoSuchOperation
from board.ports import Success
from board.tasks.visible import NoSuchTask
from tests.effects.test_scribe import end
from tests.effects.verify import verified
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import OpenWorking, WorkingBoard

ADMIN = key_actor("ops", ["admin"])
OWN = key_actor("n8n", ["submit"])  # the key that put the tasks in
OTHER = key_actor("other", ["submit"])

ASK, TWO = {"when": "always", "grace": "0s"}, {"events": ["needs_review", "done"]}


def again(board: WorkingBoard, operation: int | str, actor: object = ADMIN, reason: str | None = None) -> None:
    with board.board.db.write() as tx:
        resend(tx, actor, str(operation), "api", reason)  # type: ignore[arg-type]
        board.board.wake_outbox(tx)


def told(board: WorkingBoard, receiver: Receiver, task_id: str = "T-1") -> int:
    """A task whose callback was confirmed; the operation's id."""
    board.type("echo", use="echo")
    board.submit(task_id, type="echo", callback_url=receiver.url)
    board.wait(task_id, "done")
    board.until(lambda: board.operations(task_id)[0]["status"] == "confirmed")
    return int(board.operations(task_id)[0]["id"])


def test_what_was_confirmed_goes_again_under_the_same_id(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    operation = told(board, receiver)
    again(board, operation, OWN, "The flow lost it.")
    one, two = receiver.wait_for(2)
    board.until(lambda: board.operations()[0]["status"] == "confirmed")
    assert one.headers["webhook-id"] == two.headers["webhook-id"]
    assert one.body == two.body
    assert verified(two, board.board.webhook_secret)
    assert "x-board-outdated" not in two.headers
    assert board.operations()[0]["tries"] == 2
    event = board.events()[-1]
    assert (event["kind"], event["actor_kind"], event["actor_name"], event["note"]) == (
        "callback_resent",
        "key",
        "n8n",
        "The flow lost it.",
    )
    assert event["data"] == {"operation": str(operation)}
    assert board.task()["status"] == "done"


def test_what_was_refused_gets_three_more_days(working: OpenWorking, receiver: Receiver) -> None:
    receiver.reply(Reply(status=404), Reply(status=500))
    board = working()
    board.type("echo", use="echo")
    board.submit(type="echo", callback_url=receiver.url)
    board.until(lambda: bool(board.operations()) and board.operations()[0]["status"] == "rejected")
    board.at(10 * 86400)
    again(board, board.operations()[0]["id"])
    board.until(lambda: len(board.deliveries()) == 2)
    [operation] = board.operations()
    assert (operation["status"], operation["closed_at"]) == ("sent", None)
    left = operation["give_up_at"] - board.deliveries()[1]["at"]
    assert left.total_seconds() == pytest.approx(3 * 86400, abs=10)
    again(board, operation["id"])  # it waits for its next try: now
    board.until(lambda: board.operations()[0]["status"] == "confirmed")
    assert len(receiver.requests) == 3


def test_an_event_that_is_not_the_latest_says_so(working: OpenWorking, receiver: Receiver) -> None:
    """B083: an outdated event that is sent again is marked as outdated."""
    board = working()
    board.type(
        "echo", use="echo", review={"when": "always", "grace": "0s"}, callback={"events": ["needs_review", "done"]}
    )
    board.submit(type="echo", callback_url=receiver.url)
    board.wait("T-1", "needs_review")
    board.decide("T-1", "approve")
    receiver.wait_for(2)
    board.until(lambda: all(it["status"] == "confirmed" for it in board.operations()))
    first, second = board.operations()
    again(board, first["id"])
    again(board, second["id"])
    requests = receiver.wait_for(4)[2:]
    marks = {json.loads(it.body)["event"]: it.headers.get("x-board-outdated") for it in requests}
    assert marks == {"task.needs_review": "true", "task.done": None}


def test_what_waits_behind_another_is_not_sent_alone(working: OpenWorking, receiver: Receiver) -> None:
    receiver.default = Reply(status=500)
    board = working()
    board.type(
        "echo", use="echo", review={"when": "always", "grace": "0s"}, callback={"events": ["needs_review", "done"]}
    )
    board.submit(type="echo", callback_url=receiver.url)
    board.wait("T-1", "needs_review")
    board.until(lambda: len(board.deliveries()) == 1)
    board.decide("T-1", "approve")
    board.wait("T-1", "done")
    with pytest.raises(NotResendable, match="earlier event"):
        again(board, board.operations()[1]["id"])


def test_an_action_is_not_repeated_by_a_button(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    board.apply(connections=[{"name": "hook", "kind": "webhook", "url": receiver.url}])
    board.type("publish", use="echo", action={"use": "webhook", "connection": "hook"})
    board.submit(type="publish")
    board.wait("T-1", "done")
    with pytest.raises(NotResendable, match="Only callbacks"):
        again(board, board.operations()[0]["id"])
    assert len(receiver.requests) == 1


def test_who_may(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    operation = told(board, receiver)
    with pytest.raises(NoSuchTask):
        again(board, operation, OTHER)
    with pytest.raises(Forbidden):
        again(board, operation, key_actor("watcher", ["read"]))
    for wrong in ("0", "999999", "x", "", "9" * 30):
        with pytest.raises(NoSuchOperation):
            again(board, wrong)
    assert len(receiver.requests) == 1
    assert board.kinds()[-1] == "done"


def test_who_sends_again_and_who_writes_out_the_next_event_do_not_wait_for_each_other(
    working_postgres: OpenWorking, receiver: Receiver
) -> None:
    """Both want the task and its earlier call; one who has the call and wants the task would stop both for ever."""
    board = working_postgres(start=False)
    board.type("echo", use="echo", review=ASK, callback=TWO)
    board.submit(type="echo", callback_url=receiver.url)
    end(board, Success(result={}))
    [earlier] = board.operations()
    board.decide("T-1", "approve")
    assert board.task()["status"] == "done"
    with board.board.db.write() as writing:
        [row] = writing.execute(scribe._noted("postgresql")).mappings().all()  # the task is locked
        sending = threading.Thread(target=again, args=(board, earlier["id"]))
        sending.start()
        until_somebody_waits(board)
        board.board.scribe.write_out(writing, [row])
    sending.join(30)
    assert not sending.is_alive()
    first, second = board.operations()
    assert (first["id"], second["after"]) == (earlier["id"], earlier["id"])
    assert board.kinds().count("callback_resent") == 1


def until_somebody_waits(board: WorkingBoard) -> None:
    """Until another transaction waits for a lock of ours."""

    def waits() -> bool:
        with board.board.db.read() as connection:
            here = "datname = current_database()"
            look = text(f"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND {here}")
            return bool(connection.execute(look).scalar())

    board.until(waits)
