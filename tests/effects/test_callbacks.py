"""Word to the caller: one closing event, at least once, under one id, and nobody held up by anybody else."""

import hashlib
import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from board.effects import backoff, calls, lines, scribe, signing
from board.ports import Success
from board.tasks.history import By
from board.tasks.intake import Problem
from board.tasks.ledger import Lease
from board.worker.ending import Ended
from board.worker.endings import Endings
from tests.effects import verify
from tests.effects.told import DAY, confirmed, echo, events, statements
from tests.effects.verify import verified
from tests.heart import claim
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import OpenWorking


def test_one_closing_event_signed(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    echo(board)
    board.submit(type="echo", payload={"名": "x"}, callback_url=f"{receiver.url}/resume/7?token=t0p")
    board.wait("T-1", "done")
    [request] = receiver.wait_for(1)
    assert (request.method, request.path) == ("POST", "/resume/7?token=t0p")
    assert verified(request, board.board.webhook_secret)
    assert request.headers["idempotency-key"] == request.headers["webhook-id"]
    body = json.loads(request.body)
    assert set(body) == {"event", "seq", "task", "decision", "at"}
    assert (body["event"], body["task"]["status"], body["task"]["result"]) == ("task.done", "done", {"名": "x"})
    assert body["seq"] == board.events()[-1]["seq"]
    confirmed(board)
    [operation] = board.operations()
    assert (operation["tries"], operation["next_try_at"]) == (1, None)
    assert "t0p" not in operation["target"]
    [delivery] = board.deliveries()
    assert (delivery["http_status"], delivery["outcome"]) == (200, "confirmed")
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("listed", [True, False])
def test_needs_review_only_when_listed(working: OpenWorking, receiver: Receiver, listed: bool) -> None:
    board = working()
    parts = {"callback": {"events": ["needs_review", "done"]}} if listed else {}
    echo(board, review={"when": "always", "grace": "0s"}, **parts)
    board.submit(type="echo", callback_url=receiver.url)
    board.wait("T-1", "needs_review")
    if listed:
        receiver.wait_for(1)
    board.decide("T-1", "approve")
    board.wait("T-1", "done")
    requests = receiver.wait_for(1 + listed)
    confirmed(board)
    assert events(receiver) == (["task.needs_review", "task.done"] if listed else ["task.done"])
    assert len({request.headers["webhook-id"] for request in requests}) == len(requests)
    seqs = [json.loads(request.body)["seq"] for request in requests]
    assert seqs == sorted(set(seqs))
    last = json.loads(requests[-1].body)
    assert last["decision"]["verdict"] == last["task"]["decision"]["verdict"] == "approve"


def test_it_is_tried_again_under_the_same_id_with_fresh_time(
    working: OpenWorking, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B081"""
    monkeypatch.setattr(backoff, "BASE_SECONDS", 0.01)
    monkeypatch.setattr(calls, "TIMEOUT", 0.5)
    receiver.reply(Reply(status=500), Reply(close=True), Reply(hang=True))
    board = working()
    echo(board)
    board.submit(type="echo", callback_url=receiver.url)
    board.wait("T-1", "done")
    requests = receiver.wait_for(4)
    confirmed(board)
    assert len({request.headers["webhook-id"] for request in requests}) == 1
    assert len({request.body for request in requests}) == 1
    assert len({request.headers["webhook-timestamp"] for request in requests}) > 1
    assert all(verified(request, board.board.webhook_secret) for request in requests)
    assert board.operations()[0]["tries"] == 4
    assert [it["outcome"] for it in board.deliveries()] == ["unknown", "unknown", "unknown", "confirmed"]


def test_never_before_retry_after(working: OpenWorking, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "BASE_SECONDS", 0.01)
    receiver.reply(Reply(status=503, headers={"Retry-After": "300"}))
    board = working()
    echo(board)
    board.submit(type="echo", callback_url=receiver.url)
    board.until(lambda: len(board.deliveries()) == 1)
    wait = board.operations()[0]["next_try_at"] - board.deliveries()[0]["at"]
    assert 299 <= wait.total_seconds() <= 301
    board.at(301)
    receiver.wait_for(2)
    confirmed(board)


@pytest.mark.parametrize("asked", ["9" * 400, "-5", "soon", "²", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_senseless_retry_after_does_no_harm(working_sqlite: OpenWorking, receiver: Receiver, asked: str) -> None:
    receiver.reply(Reply(status=429, headers={"Retry-After": asked.encode().decode("latin-1")}))
    board = working_sqlite()
    echo(board)
    board.submit(type="echo", callback_url=receiver.url)
    board.until(lambda: len(board.deliveries()) == 1)
    board.at(DAY + 1)
    receiver.wait_for(2)
    confirmed(board)


def test_an_answer_that_no_database_takes_does_not_hurt(working: OpenWorking, receiver: Receiver) -> None:
    receiver.reply(Reply(body=b"ok \x00 \xed\xa0\x80 \xff"))
    board = working()
    echo(board)
    board.submit(type="echo", callback_url=receiver.url)
    board.wait("T-1", "done")
    receiver.wait_for(1)
    confirmed(board)
    assert len(receiver.requests) == 1
    assert board.deliveries()[0]["detail"].startswith("ok � ")


def test_given_up_after_three_days(working: OpenWorking, receiver: Receiver) -> None:
    receiver.default = Reply(status=500)
    board = working()
    echo(board)
    board.submit(type="echo", callback_url=receiver.url)
    board.until(lambda: len(board.deliveries()) == 1)
    board.at(3 * DAY - 7200)
    board.until(lambda: len(board.deliveries()) == 2)
    assert board.operations()[0]["status"] == "sent"
    board.at(3 * DAY + 60)
    board.until(lambda: board.operations()[0]["status"] == "rejected")
    assert board.operations()[0]["last_error"].startswith("Given up after 3 tries. ")
    assert board.task()["status"] == "done"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_and_is_shown(working_sqlite: OpenWorking, receiver: Receiver, status: int) -> None:
    """B079: the page it leads to answers 200, and is never asked."""
    receiver.reply(Reply(status=status, headers={"Location": f"{receiver.url}/elsewhere"}))
    board = working_sqlite()
    echo(board)
    board.submit(type="echo", callback_url=f"{receiver.url}/hook")
    board.wait("T-1", "done")
    board.until(lambda: board.operations()[0]["status"] == "rejected")
    assert f"moved to {receiver.url}/elsewhere" in board.operations()[0]["last_error"]
    assert [request.path for request in receiver.requests] == ["/hook"]


def test_a_receiver_that_hangs_holds_up_nobody(working: OpenWorking, receiver: Receiver) -> None:
    """B079: A never answers, B gets its twenty at once, and a stop does not wait for A."""
    hanging = Receiver()
    hanging.default = Reply(hang=True)
    board = working()
    echo(board)
    for number in range(20):
        board.submit(f"A-{number}", type="echo", callback_url=f"{hanging.url}/hook")
    for number in range(20):
        board.submit(f"B-{number}", type="echo", callback_url=f"{receiver.url}/hook")
    for number in range(20):
        board.wait(f"B-{number}", "done")
        confirmed(board, f"B-{number}")
    assert len(receiver.requests) == 20
    assert 1 <= len(hanging.requests) <= lines.MOST
    assert all(it["outcome"] == "confirmed" for it in board.deliveries())
    board.stop()
    hanging.close()


def test_callbacks_of_a_worker_that_vanished_go_out_again(working: OpenWorking, receiver: Receiver) -> None:
    """B081: taken, never closed: another worker sends it a minute later, under the same id."""
    receiver.reply(Reply(hang=True))
    first = working()
    echo(first)
    first.submit(type="echo", callback_url=receiver.url)
    receiver.wait_for(1)
    first.stop()
    assert first.operations()[0]["status"] == "sent"
    second = working()
    second.at(scribe.TAKEN_SECONDS + 1)
    one, two = receiver.wait_for(2)
    confirmed(second)
    assert one.headers["webhook-id"] == two.headers["webhook-id"]
    assert one.body == two.body


def test_a_rejection_is_told_after_its_grace_and_not_when_undone(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    echo(board, review={"when": "always", "grace": "60s"})
    for name in ("T-1", "T-2"):
        board.submit(name, type="echo", callback_url=f"{receiver.url}/{name}")
        board.wait(name, "needs_review")
        board.decide(name, "reject", reason="No.")
        assert board.task(name)["status"] == "cancelled"
    board.undo("T-1")
    assert board.task("T-1")["status"] == "needs_review"
    assert receiver.requests == []
    board.at(61)
    receiver.wait_for(1)
    confirmed(board, "T-2")
    assert board.operations("T-1") == []
    assert [request.path for request in receiver.requests] == ["/T-2"]
    body = json.loads(receiver.requests[0].body)
    assert (body["event"], body["decision"]["verdict"], body["decision"]["reason"]) == (
        "task.cancelled",
        "reject",
        "No.",
    )


def test_undo_leaves_earlier_word_alone(working: OpenWorking, receiver: Receiver) -> None:
    """The call about needs_review had not gone out yet when the decision came and was undone."""
    board = working(start=False)
    echo(board, review={"when": "always"}, callback={"events": ["needs_review", "done", "cancelled"]})
    board.submit(type="echo", callback_url=receiver.url)
    board.start()
    board.wait("T-1", "needs_review")
    board.stop()
    with board.board.db.write() as tx:  # as if it were still to be sent
        tx.exec_driver_sql("UPDATE operations SET tries = 0, status = 'reserved'")
    board.decide("T-1", "reject")
    assert len(board.operations()) == 2
    board.undo("T-1")
    assert len(board.operations()) == 1


def test_an_address_that_is_no_longer_allowed_is_not_called(working: OpenWorking, receiver: Receiver) -> None:
    """B077: checked when the task comes in and again at each call."""
    first = working(start=False)
    echo(first)
    first.submit(type="echo", callback_url=receiver.url)
    second = working(allow_private_targets=[])
    second.wait("T-1", "done")
    second.until(lambda: second.operations()[0]["status"] == "rejected")
    assert "is not a public address" in second.operations()[0]["last_error"]
    assert receiver.requests == []


def test_a_private_address_is_refused_at_the_door(working_sqlite: OpenWorking) -> None:
    board = working_sqlite(start=False, allow_private_targets=[])
    echo(board)
    with pytest.raises(Problem) as refused:
        board.submit(type="echo", callback_url="http://127.0.0.1:8000/hook")
    assert (refused.value.field, refused.value.code) == ("callback_url", "address_refused")
    assert "BOARD_ALLOW_PRIVATE_TARGETS" in str(refused.value)


def test_gone_is_the_end(working: OpenWorking, receiver: Receiver) -> None:
    receiver.default = Reply(status=410)
    board = working()
    echo(board)
    board.submit(type="echo", callback_url=receiver.url)
    board.until(lambda: bool(board.deliveries()))
    [operation] = board.operations()
    assert (operation["status"], operation["tries"], operation["next_try_at"]) == ("rejected", 1, None)
    assert "gone" in operation["last_error"]
    board.at(3 * DAY - 60)
    board.submit("T-2", type="echo", callback_url=receiver.url)
    receiver.wait_for(2)
    assert len(receiver.requests) == 2


@pytest.mark.parametrize("asked", ["number", "date"])
def test_retry_after_as_number_and_as_date_and_at_most_a_day(
    working_sqlite: OpenWorking, receiver: Receiver, asked: str
) -> None:
    text = "999999" if asked == "number" else format_datetime(datetime.now(UTC) + timedelta(days=9), usegmt=True)
    soon = "900" if asked == "number" else format_datetime(datetime.now(UTC) + timedelta(seconds=900), usegmt=True)
    receiver.reply(Reply(status=429, headers={"Retry-After": soon}), Reply(status=503, headers={"Retry-After": text}))
    board = working_sqlite()
    echo(board)
    board.submit("T-1", type="echo", callback_url=receiver.url)
    board.until(lambda: len(board.deliveries()) == 1)
    board.submit("T-2", type="echo", callback_url=receiver.url)
    board.until(lambda: len(board.deliveries()) == 2)
    for task_id, delivery, seconds in [("T-1", 0, 900), ("T-2", 1, DAY)]:
        wait = board.operations(task_id)[0]["next_try_at"] - board.deliveries()[delivery]["at"]
        assert wait.total_seconds() == pytest.approx(seconds, abs=60)


@pytest.mark.parametrize("hosts", [1, 20])
def test_however_many_receivers_hang_a_healthy_one_is_served(
    working: OpenWorking, receiver: Receiver, hosts: int
) -> None:
    """B079: p95 under 2 s. The hanging ones differ by their port, as hosts do by their name."""
    hanging = [Receiver() for _ in range(hosts)]
    board = working()
    echo(board)
    for number, it in enumerate(hanging):
        it.default = Reply(hang=True)
        for again in range(20 // hosts):
            board.submit(f"A-{number}-{again}", type="echo", callback_url=f"{it.url}/hook")
    for it in hanging:
        it.wait_for(1)
    for number in range(20):
        board.submit(f"B-{number}", type="echo", callback_url=f"{receiver.url}/hook")
    for number in range(20):
        board.wait(f"B-{number}", "done")
        confirmed(board, f"B-{number}")
    waits = []
    for number in range(20):
        [operation] = board.operations(f"B-{number}")
        waits.append((operation["closed_at"] - operation["created_at"]).total_seconds())
    assert sorted(waits)[18] < 2.0
    assert all(len(it.requests) <= lines.FIRST for it in hanging)
    board.stop()
    for it in hanging:
        it.close()


def test_six_tries_over_more_than_five_minutes_for_a_receiver_that_allows_three_hundred_seconds(
    working: OpenWorking, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B081: one id and one body; the time of the call, and so the signature, fresh in every try."""
    receiver.reply(*[Reply(status=503)] * 5)
    board = working()
    real, ahead = time.time, 0.0
    monkeypatch.setattr(signing.time, "time", lambda: real() + ahead)
    monkeypatch.setattr(verify._RECEIVER["time"], "time", lambda: real() + ahead)
    echo(board)
    board.submit(type="echo", callback_url=receiver.url)
    for number in range(6):
        request = receiver.wait_for(number + 1)[-1]
        assert verified(request, board.board.webhook_secret)
        board.until(lambda tried=number + 1: len(board.deliveries()) == tried)  # type: ignore[misc]
        ahead += 100
        board.at(ahead)
    confirmed(board)
    assert ahead > 300
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
    assert len({request.body for request in receiver.requests}) == 1
    stamps = [int(request.headers["webhook-timestamp"]) for request in receiver.requests]
    assert stamps[-1] - stamps[0] > 300
    assert not verified(receiver.requests[0], board.board.webhook_secret)  # by now too old


def test_many_that_end_together_are_told_in_as_few_statements_as_two(working: OpenWorking) -> None:
    board = working(start=False)
    echo(board, review={"when": "never"})
    heart, by = board.board, By("worker", "w1", "worker")
    endings = Endings(heart.db, heart.ledger, heart.catalogue)
    counts = []
    for name, number in (("warm", 2), ("few", 2), ("many", 30)):
        for n in range(number):
            board.submit(f"{name}-{n}", type="echo", payload={"n": n}, callback_url=f"http://127.0.0.1/{name}/{n}")
        rows = claim(heart.db, heart.ledger, limit=number)
        ended = [Ended(row, Lease(row["id"], row["lease_token"]), by, Success(result=row["task_id"])) for row in rows]
        with statements() as said:
            assert endings.write(ended) == [None] * number
        counts.append(len(said))
    assert counts[1] == counts[2]
    for n in range(30):
        [operation] = board.operations(f"many-{n}")
        document = json.loads(operation["body"])["task"]
        assert (operation["url"], operation["after"]) == (f"http://127.0.0.1/many/{n}", None)
        assert (document["task_id"], document["payload"], document["result"]) == (f"many-{n}", {"n": n}, f"many-{n}")
        assert operation["request_hash"] == hashlib.sha256(operation["body"].encode()).hexdigest()
