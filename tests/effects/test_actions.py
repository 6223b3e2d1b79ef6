"""The action `webhook`: once, signed, and with every answer treated as the contract says."""

import base64
import itertools
import json
from typing import Any

import pytest

from board.effects import calls
from board.tasks.edit import TaskEdit, apply
from board.tasks.requeue import requeue
from tests.effects.verify import verified
from tests.rig.ports import free_port
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import CALLER, OpenWorking, WorkingBoard

SECRET = "whsec_" + base64.b64encode(b"a secret of the receiver").decode()


def publishing(board: WorkingBoard, url: str, *, action: dict[str, Any] | None = None, **connection: Any) -> None:
    """The type `publish`: echoes its payload, then posts it to the connection `hook`."""
    hook = {"name": "hook", "kind": "webhook", "url": url, "secret": SECRET} | connection
    board.apply(connections=[hook])
    board.type("publish", use="echo", action={"use": "webhook", "connection": "hook"} | (action or {}))


def test_it_arrives_once_signed_with_the_result(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    publishing(board, f"{receiver.url}/publish?token=t0p")
    board.submit(type="publish", payload={"text": "发布 ✓"})
    task = board.wait("T-1", "done")
    [request] = receiver.wait_for(1)
    assert (request.method, request.path) == ("POST", "/publish?token=t0p")
    assert request.headers["content-type"] == "application/json"
    assert verified(request, SECRET)
    body = json.loads(request.body)
    assert set(body) == {"event", "seq", "task", "decision", "at"}
    assert (body["event"], body["task"]["task_id"], body["task"]["result"]) == (
        "task.action",
        "T-1",
        {"text": "发布 ✓"},
    )
    assert request.headers["idempotency-key"] == request.headers["webhook-id"]
    [operation] = board.operations()
    assert (operation["status"], operation["tries"], operation["kind"]) == ("confirmed", 1, "webhook.action")
    assert "t0p" not in operation["target"]
    assert (task["phase"], task["has_action"]) == ("act", True)
    assert board.kinds() == ["created", "started", "work_done", "started", "done"]
    assert len(receiver.requests) == 1


def test_a_secret_that_is_no_whsec_counts_as_its_bytes(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    publishing(board, receiver.url, secret="ein Geheimnis, 秘密")
    board.submit(type="publish")
    board.wait("T-1", "done")
    assert verified(receiver.requests[0], "ein Geheimnis, 秘密")


def test_without_a_secret_the_boards_own_signs(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    board.apply(connections=[{"name": "hook", "kind": "webhook", "url": receiver.url}])
    board.type("publish", use="echo", action={"use": "webhook", "connection": "hook"})
    board.submit(type="publish")
    board.wait("T-1", "done")
    assert verified(receiver.requests[0], board.board.webhook_secret)


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [
        ({"header": {"X-Token": "tok-0815"}}, "x-token", "tok-0815"),
        ({"basic": {"user": "n8n", "password": "p:w-0815"}}, "authorization", "Basic bjhuOnA6dy0wODE1"),
    ],
)
def test_header_and_basic_auth(
    working_sqlite: OpenWorking, receiver: Receiver, auth: dict[str, Any], header: str, value: str
) -> None:
    board = working_sqlite()
    publishing(board, receiver.url, auth=auth)
    board.submit(type="publish")
    board.wait("T-1", "done")
    assert receiver.requests[0].headers[header] == value
    assert verified(receiver.requests[0], SECRET)
    assert "0815" not in board.dump()


@pytest.mark.parametrize(
    ("reply", "status", "error_class", "operation", "said"),
    [
        (Reply(status=200), "done", None, "confirmed", None),
        (Reply(status=204, body=b""), "done", None, "confirmed", None),
        (Reply(status=200, body=b"no json at all \x00\xff"), "done", None, "confirmed", None),
        (Reply(status=301, headers={"Location": "/new?key=k"}), "failed", "permanent", "rejected", "moved to "),
        (Reply(status=302, headers={"Location": "http://[bad"}), "failed", "permanent", "rejected", "unnamed"),
        (Reply(status=304, body=b""), "failed", "permanent", "rejected", "answered 304"),
        (Reply(status=400), "failed", "permanent", "rejected", "answered 400"),
        (Reply(status=401), "failed", "permanent", "rejected", "answered 401"),
        (Reply(status=404), "failed", "permanent", "rejected", "answered 404"),
        (Reply(status=409), "failed", "permanent", "rejected", "answered 409"),
        (Reply(status=500), "needs_review", "unknown", "unknown", "answered 500"),
        (Reply(status=502), "needs_review", "unknown", "unknown", "answered 502"),
        (Reply(status=504), "needs_review", "unknown", "unknown", "answered 504"),
        (Reply(close=True), "needs_review", "unknown", "unknown", "its answer was lost"),
        (Reply(hang=True), "needs_review", "unknown", "unknown", "its answer was lost"),
    ],
    ids=lambda value: str(value) if isinstance(value, int | str) else None,
)
def test_what_an_answer_means(
    working_sqlite: OpenWorking,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    reply: Reply,
    status: str,
    error_class: str | None,
    operation: str,
    said: str | None,
) -> None:
    monkeypatch.setattr(calls, "TIMEOUT", 2.0)
    receiver.reply(reply)
    board = working_sqlite()
    publishing(board, receiver.url)
    board.submit(type="publish")
    task = board.wait("T-1", status)
    assert task["error_class"] == error_class
    assert (said or "") in (task["last_error"] or "")
    assert "key=k" not in (task["last_error"] or "")
    assert board.operations()[0]["status"] == operation
    assert len(receiver.wait_for(1)) == 1
    [delivery] = board.deliveries()
    answered = not (reply.close or reply.hang)
    assert delivery["outcome"] == operation
    assert delivery["http_status"] == (reply.status if answered else None)
    assert delivery["milliseconds"] >= (1900 if reply.hang else 0)
    assert delivery["detail"] or not reply.body


def test_a_body_that_never_ends_does_not_hide_a_yes(
    working_sqlite: OpenWorking, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "TIMEOUT", 0.5)
    receiver.reply(Reply(body=b"x" * 1000, drip=0.2))
    board = working_sqlite()
    publishing(board, receiver.url)
    board.submit(type="publish")
    board.wait("T-1", "done")


@pytest.mark.parametrize("reply", [Reply(status=429, headers={"Retry-After": "1"}), Reply(status=503)])
def test_busy_is_tried_again_with_the_same_bytes(working: OpenWorking, receiver: Receiver, reply: Reply) -> None:
    receiver.reply(reply, reply)
    board = working()
    publishing(board, receiver.url)
    board.submit(type="publish")
    task = board.wait("T-1", "done", timeout=20)
    assert task["retry_count"] == 2
    requests = receiver.wait_for(3)
    assert len({request.body for request in requests}) == 1
    assert len({request.headers["webhook-id"] for request in requests}) == 1
    assert all(verified(request, SECRET) for request in requests)
    if reply.status == 429:
        assert min(later.at - earlier.at for earlier, later in itertools.pairwise(requests)) >= 1.0
        assert len({request.headers["webhook-timestamp"] for request in requests}) == 3
        assert board.attempts()[1]["error_class"] == "quota"


def test_a_host_that_is_not_there_is_tried_again_and_nothing_was_sent(working: OpenWorking) -> None:
    board = working()
    publishing(board, f"http://127.0.0.1:{free_port()}/hook")
    board.submit(type="publish")
    task = board.wait("T-1", "failed", timeout=20)
    assert (task["error_class"], task["error_cause"], task["retry_count"]) == ("transient", "network", 2)
    assert "could not be reached" in task["last_error"]
    assert board.operations()[0]["status"] == "rejected"


@pytest.mark.parametrize("reply", [Reply(status=500), Reply(close=True), Reply(hang=True)])
def test_an_idempotent_receiver_is_asked_again_under_the_same_key(
    working: OpenWorking, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, reply: Reply
) -> None:
    monkeypatch.setattr(calls, "TIMEOUT", 0.5)
    receiver.reply(reply)
    board = working()
    publishing(board, receiver.url, idempotent=True)
    board.submit(type="publish")
    board.wait("T-1", "done")
    first, second = receiver.wait_for(2)
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.body == second.body
    [operation] = board.operations()
    assert (operation["status"], operation["tries"]) == ("confirmed", 2)
    assert [it["outcome"] for it in board.deliveries()] == ["unknown", "confirmed"]


def unknown(board: WorkingBoard, receiver: Receiver) -> None:
    receiver.reply(Reply(status=500))
    publishing(board, receiver.url)
    board.submit(type="publish")
    board.wait("T-1", "needs_review")


def test_resolved_as_happened(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    unknown(board, receiver)
    board.decide("T-1", "happened", reason="It is online.", reference="post-77")
    task = board.wait("T-1", "done")
    assert (task["last_error"], task["error_class"]) == (None, None)
    [operation] = board.operations()
    assert (operation["status"], operation["external_reference"]) == ("confirmed", "post-77")
    assert len(receiver.requests) == 1


def test_resolved_as_not_happened_is_sent_again_under_the_same_key(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    unknown(board, receiver)
    board.decide("T-1", "not_happened", reason="Nothing is online.")
    board.wait("T-1", "done")
    first, second = receiver.wait_for(2)
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert board.operations()[0]["status"] == "confirmed"


def test_resolved_as_drop(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    unknown(board, receiver)
    board.decide("T-1", "drop", reason="Not needed any more.")
    board.wait("T-1", "cancelled")
    assert board.operations()[0]["status"] == "rejected"
    assert len(receiver.requests) == 1


def test_requeued_while_unknown_it_is_asked_about_again_and_not_sent(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    unknown(board, receiver)
    board.cancel("T-1")
    heart = board.board
    with heart.db.write() as tx:
        requeue(tx, heart.ledger, heart.catalogue, board.task()["id"], CALLER)
    board.until(lambda: len(board.reviews()) == 2)
    board.wait("T-1", "needs_review")
    first, second = board.reviews()
    assert (first["status"], second["reason"], second["operation"]) == ("closed", "unknown_outcome", first["operation"])
    assert len(receiver.requests) == 1


POST_KEY = {"operation_key": "publish:{{ payload.post }}:v1"}


def test_two_tasks_for_one_business_action_act_once(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    publishing(board, receiver.url, action=POST_KEY)
    board.submit("T-1", type="publish", payload={"post": 31, "text": "same"})
    board.wait("T-1", "done")
    board.submit("T-2", type="publish", payload={"post": 31, "text": "same"})
    board.wait("T-2", "done")
    assert len(receiver.requests) == 1
    assert (len(board.operations("T-1")), len(board.operations("T-2"))) == (1, 0)


def test_another_content_under_the_same_key_is_refused_and_shown(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    publishing(board, receiver.url, action=POST_KEY)
    board.submit("T-1", type="publish", payload={"post": 31, "text": "one"})
    board.wait("T-1", "done")
    board.submit("T-2", type="publish", payload={"post": 31, "text": "two"})
    task = board.wait("T-2", "failed")
    assert (task["error_class"], task["error_cause"]) == ("permanent", "precondition")
    assert "“publish:31:v1” belongs to task T-1, which has another content; nothing was sent" in task["last_error"]
    assert len(receiver.requests) == 1


def test_two_tasks_at_the_same_moment_act_once(working: OpenWorking, receiver: Receiver) -> None:
    receiver.default = Reply(delay=2.0)
    board = working()
    publishing(board, receiver.url, action=POST_KEY)
    board.submit("T-1", type="publish", payload={"post": 31})
    receiver.wait_for(1)
    board.submit("T-2", type="publish", payload={"post": 31})
    waiting = board.wait("T-2", "retrying")
    assert "Task T-1 is just doing the same" in waiting["last_error"]
    board.wait("T-1", "done")
    board.wait("T-2", "done")
    assert "run_now" in board.kinds("T-2"), "woken, and not by its own time"
    assert len(receiver.requests) == 1


def test_a_key_whose_value_is_missing_sends_nothing(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    publishing(board, receiver.url, action=POST_KEY)
    board.submit(type="publish", payload={})
    task = board.wait("T-1", "failed")
    assert "payload.post" in task["last_error"]
    assert receiver.requests == []


def test_content_that_was_corrected_after_a_refusal_is_sent_anew(working: OpenWorking, receiver: Receiver) -> None:
    """What a receiver has refused may be mended: then the new content goes out, not the refused bytes again."""
    receiver.reply(Reply(status=422))
    board = working()
    publishing(board, receiver.url)
    board.submit(type="publish", payload={"text": "worng"})
    board.wait("T-1", "failed")
    heart = board.board
    with heart.db.write() as tx:
        edit = TaskEdit(version=board.task()["version"], payload={"text": "right"})
        apply(
            tx,
            heart.ledger,
            heart.catalogue,
            heart.files,
            heart.visits.task_edited,
            board.task()["id"],
            edit,
            CALLER,
        )
    with heart.db.write() as tx:
        requeue(tx, heart.ledger, heart.catalogue, board.task()["id"], CALLER)
    board.wait("T-1", "done")
    first, second = receiver.wait_for(2)
    assert b"worng" in first.body
    assert json.loads(second.body)["task"]["payload"] == {"text": "right"}
    assert verified(second, SECRET)


def test_a_daily_cap_of_calls_holds_the_next_one_back_until_midnight(working: OpenWorking, receiver: Receiver) -> None:
    """B011: where the connection sets one; the task says why it waits and until when."""
    board = working()
    publishing(board, receiver.url, limits={"per_day": 1})
    board.submit("T-1", type="publish")
    board.wait("T-1", "done")
    board.submit("T-2", type="publish")
    board.until(lambda: board.kinds("T-2")[-1] == "work_done" and board.task("T-2")["held_by"] is not None)
    heart = board.board
    with heart.db.read() as connection:
        waits = heart.task_document(connection, board.task("T-2"))["waiting_for"]
    assert waits["code"] == "limit"
    assert "The limit of the connection hook is reached. The next one may start at " in waits["message"]
    assert len(receiver.requests) == 1
    board.at(86_400)
    board.wait("T-2", "done", timeout=30)
    assert len(receiver.wait_for(2)) == 2
