"""Subscriptions: every event told once under one id, in order, signed, and nobody held up by anybody else."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from sqlalchemy import select, text

from board.access import keys
from board.access.rights import Forbidden, key_actor
from board.effects import backoff, fan_out, subscriptions
from board.effects.deliver import Outbox
from board.effects.models import operations
from board.effects.models import subscriptions as table
from board.effects.subscribed import document
from board.effects.subscriptions import Event, SubscriptionRefused
from board.ports import Success
from board.review import overdue
from board.tasks.history import By
from board.tasks.intake import Problem
from board.tasks.ledger import Lease
from board.worker.ending import Ended
from board.worker.endings import Endings
from tests.effects.subscribing import EVERYTHING, READER, noted, rows, said, subscribe, unsubscribe
from tests.effects.told import DAY, echo, statements
from tests.effects.verify import verified
from tests.heart import claim
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import OpenWorking, WorkingBoard

URL = "http://127.0.0.1:9/hook"  # nobody is called where no sender runs
BY = By("worker", "w1", "worker")


def end_all(board: WorkingBoard, number: int) -> None:
    heart = board.board
    claimed = claim(heart.db, heart.ledger, limit=number)
    ended = [Ended(row, Lease(row["id"], row["lease_token"]), BY, Success(result={})) for row in claimed]
    assert Endings(heart.db, heart.ledger, heart.catalogue).write(ended) == [None] * number


def write_out(board: WorkingBoard) -> None:
    with board.board.db.write() as tx:
        assert fan_out.write_some(tx, board.board.task_documents) is False


def confirmed(board: WorkingBoard, number: int) -> None:
    board.until(lambda: [row["status"] for row in rows(board)] == ["confirmed"] * number)


def test_the_life_of_a_task_is_told_in_order(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    echo(board, review={"when": "always", "grace": "0s"})
    subscribe(board, f"{receiver.url}/hook?token=t0p")
    board.submit(type="echo", payload={"名": "x"})
    board.wait("T-1", "needs_review")
    board.decide("T-1", "approve", reason="Good.")
    board.wait("T-1", "done")
    requests = receiver.wait_for(5)
    confirmed(board, 5)
    assert [said(request)[:2] for request in requests] == [
        ("task.created", "pending"),
        ("task.started", "running"),
        ("task.needs_review", "needs_review"),
        ("review.decided", "pending"),
        ("task.done", "done"),
    ]
    seqs = [said(request)[2] for request in requests]
    assert seqs == sorted(set(seqs))
    assert all(request.path == "/hook?token=t0p" for request in requests)
    assert all(verified(request, board.board.webhook_secret) for request in requests)
    assert len({request.headers["webhook-id"] for request in requests}) == 5
    body = json.loads(requests[3].body)
    assert set(body) == {"event", "seq", "task", "decision", "at"}
    assert (body["decision"]["verdict"], body["decision"]["reason"]) == ("approve", "Good.")
    assert body["task"]["payload"] == {"名": "x"}
    assert all("t0p" not in row["target"] for row in rows(board))


def test_a_secret_of_its_own_signs_and_is_stored_encrypted(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    echo(board)
    subscribe(board, receiver.url, Event.DONE, secret="only for this one")
    board.submit(type="echo")
    [request] = receiver.wait_for(1)
    assert verified(request, "only for this one")
    with board.board.db.read() as connection:
        stored = connection.execute(select(table.c.secret)).scalar_one()
    assert "only for this one" not in stored
    assert board.board.vault.decrypt(stored) == "only for this one"


def test_only_of_the_types_that_are_wanted(working: OpenWorking) -> None:
    board = working(start=False)
    echo(board)
    board.type("other", use="echo")
    subscribe(board, f"{URL}/some", Event.CREATED, types=("other",))
    board.submit("T-1", type="echo")
    assert noted(board) == []
    board.submit("T-2", type="other")
    subscribe(board, f"{URL}/all", Event.CREATED)
    board.submit("T-3", type="echo")
    board.submit("T-4", type="other")
    write_out(board)
    assert [(row["url"][-4:], row["task_id"]) for row in rows(board)] == [
        ("some", "T-2"),
        ("/all", "T-3"),
        ("some", "T-4"),
        ("/all", "T-4"),
    ]
    assert len({row["key"] for row in rows(board)}) == 4


def test_of_what_was_before_nothing_is_told(working: OpenWorking) -> None:
    board = working(start=False)
    echo(board)
    first = subscribe(board, f"{URL}/1", Event.CREATED)
    board.submit("T-1", type="echo")
    subscribe(board, f"{URL}/2", Event.CREATED)
    write_out(board)
    assert [row["subscription"] for row in rows(board)] == [first]


def test_a_task_that_nobody_subscribes_to_costs_no_statement(working: OpenWorking) -> None:
    board = working(start=False)
    echo(board, review={"when": "never"})
    counts = {}
    for name in ("warm", "none", "other event", "told"):
        if name == "other event":
            subscribe(board, f"{URL}/1", Event.FAILED)
        if name == "told":
            subscribe(board, f"{URL}/2", Event.DONE)
        for n in range(20):
            board.submit(f"{name}-{n}", type="echo")
        with statements() as found:
            end_all(board, 20)
        counts[name] = len([it for it in found if "subscriptions" not in it])  # the cached look, at most twice a second
    assert counts["other event"] == counts["none"]
    assert counts["told"] <= counts["none"] + 4, "the documents of all, and one insert"
    assert len(noted(board)) == 20


def test_the_look_is_asked_again_only_after_its_time(working: OpenWorking, monkeypatch: pytest.MonkeyPatch) -> None:
    board = working(start=False)
    wanted = subscriptions.Wanted()
    with board.board.db.write() as tx, statements() as found:
        for _ in range(10):
            assert wanted.events(tx) == {}
    assert len(found) == 1
    monkeypatch.setattr(subscriptions, "KNOWN_SECONDS", 0.0)
    fresh = subscriptions.Wanted()
    with board.board.db.write() as tx, statements() as found:
        for _ in range(3):
            fresh.events(tx)
    assert len(found) == 3


def test_tried_again_under_the_same_id_and_in_order(
    working: OpenWorking, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B081 B083"""
    monkeypatch.setattr(backoff, "BASE_SECONDS", 0.01)
    receiver.reply(Reply(status=500), Reply(status=503), Reply(close=True))
    board = working()
    echo(board)
    subscribe(board, receiver.url)
    board.submit(type="echo")
    requests = receiver.wait_for(6)
    confirmed(board, 3)
    assert [said(it)[0] for it in requests] == ["task.created"] * 4 + ["task.started", "task.done"]
    assert len({it.headers["webhook-id"] for it in requests[:4]}) == 1
    assert len({it.body for it in requests[:4]}) == 1


def test_a_dead_receiver_holds_up_nobody_and_ends_visible(working: OpenWorking, receiver: Receiver) -> None:
    """B079"""
    board = working()
    echo(board)
    dead = subscribe(board, URL, Event.DONE)
    alive = subscribe(board, receiver.url, Event.DONE)
    for n in range(5):
        board.submit(f"T-{n}", type="echo")
    receiver.wait_for(5)
    board.until(lambda: [row["status"] for row in rows(board) if row["subscription"] == alive] == ["confirmed"] * 5)
    board.until(lambda: any(row["tries"] for row in rows(board) if row["subscription"] == dead))
    board.until(lambda: shown(board, dead)["trying"]["try"] is not None)
    assert shown(board, dead)["waiting"] == 5
    board.at(3 * DAY + 60)
    board.until(lambda: shown(board, dead)["given_up"] == 5)
    assert "Given up after" in shown(board, dead)["last"]["last_error"]
    assert shown(board, dead)["status"] == "active", "a receiver may come back"


def shown(board: WorkingBoard, subscription: str) -> dict[str, object]:
    with board.board.db.read() as connection:
        return document(connection, subscriptions.one(connection, subscription, READER))


def test_410_switches_it_off_with_a_note(working: OpenWorking, receiver: Receiver) -> None:
    receiver.reply(Reply(status=410))
    board = working()
    echo(board)
    gone = subscribe(board, receiver.url, Event.CREATED, Event.DONE)
    board.submit("T-1", type="echo")
    board.until(lambda: shown(board, gone)["status"] == "disabled")
    assert "wants no more calls" in str(shown(board, gone)["note"])
    board.until(lambda: {row["status"] for row in rows(board)} == {"rejected"})
    board.submit("T-2", type="echo")
    board.wait("T-2", "done")
    assert noted(board) == []
    assert len(receiver.requests) == 1


def test_a_removed_subscription_stops_at_once(working: OpenWorking) -> None:
    board = working(start=False)
    echo(board)
    it = subscribe(board, URL, Event.CREATED)
    board.submit("T-1", type="echo")
    write_out(board)
    board.submit("T-2", type="echo")
    unsubscribe(board, it)
    board.submit("T-3", type="echo")
    write_out(board)
    [row] = rows(board)
    assert (row["status"], row["last_error"], row["next_try_at"]) == ("rejected", subscriptions.REMOVED, None)
    assert noted(board) == []
    with pytest.raises(SubscriptionRefused):
        unsubscribe(board, it)


async def test_what_was_taken_before_it_was_removed_is_not_sent(
    working_sqlite: OpenWorking, receiver: Receiver
) -> None:
    """A process that does not know yet writes out once more; whoever sends looks again."""
    board = working_sqlite(start=False)
    echo(board)
    it = subscribe(board, receiver.url, Event.CREATED)
    board.submit("T-1", type="echo")
    write_out(board)
    heart = board.board
    with heart.db.write() as tx:
        tx.execute(table.delete())
    outbox = Outbox(heart.db, heart.catalogue, heart.scribe, heart.webhook_secret)
    [due] = outbox.take(lambda _: 5).rows
    assert (due.subscription, due.secret) == (it, None)
    board.start()
    board.at(120)
    board.until(lambda: rows(board)[0]["status"] == "rejected")
    assert receiver.requests == []


def test_it_is_one_by_address_and_events(working: OpenWorking) -> None:
    board = working(start=False)
    first = subscribe(board, URL, Event.DONE, Event.FAILED, secret="one")
    again = subscribe(board, URL, Event.FAILED, Event.DONE, types=("echo",), secret="two")
    assert first == again
    assert shown(board, first)["types"] == ["echo"]
    assert subscribe(board, URL, Event.DONE) != first
    assert subscribe(board, f"{URL}/other", Event.DONE, Event.FAILED) != first


def test_nobody_takes_over_what_another_key_has_made(working: OpenWorking) -> None:
    board = working(start=False)
    theirs = subscribe(board, URL, Event.DONE)
    other = key_actor("other", ["read"])
    with pytest.raises(SubscriptionRefused, match="key:n8n"):
        subscribe(board, URL, Event.DONE, actor=other, secret="mine")
    with board.board.db.write() as tx, pytest.raises(SubscriptionRefused):
        subscriptions.remove(tx, theirs, other)
    with pytest.raises(Forbidden):
        subscribe(board, f"{URL}/x", actor=key_actor("only", ["submit"]))
    assert subscribe(board, URL, Event.DONE, actor=key_actor("root", ["admin"])) == theirs


def test_a_revoked_key_hears_of_nothing_and_the_next_one_takes_over(working: OpenWorking) -> None:
    board = working(start=False)
    echo(board)
    with board.board.db.write() as tx:
        keys.create(tx, "n8n", ["read"])
    theirs = subscribe(board, URL, Event.CREATED)
    with board.board.db.write() as tx:
        keys.revoke(tx, "n8n")
    board.submit(type="echo")
    write_out(board)
    assert rows(board) == []
    root = key_actor("root", ["admin"])
    with board.board.db.read() as connection:
        assert "was revoked" in document(connection, subscriptions.one(connection, theirs, root))["note"]
    other = key_actor("other", ["read"])
    assert subscribe(board, URL, Event.CREATED, actor=other) == theirs
    with board.board.db.read() as connection:
        assert document(connection, subscriptions.one(connection, theirs, other))["status"] == "active"


@pytest.mark.parametrize("url", ["http://10.0.0.1/hook", "http://169.254.169.254/x", "ftp://example.org/", "nonsense"])
def test_an_address_that_may_not_be_called_is_refused(working_sqlite: OpenWorking, url: str) -> None:
    board = working_sqlite(start=False)
    with pytest.raises(Problem) as refused:
        subscribe(board, url)
    assert (refused.value.field, refused.value.code) == ("url", "address_refused")


@pytest.mark.parametrize("written", [False, True])
def test_an_undone_decision_is_not_told(working: OpenWorking, written: bool) -> None:
    board = working(start=False)
    echo(board, review={"when": "always", "grace": "60s"})
    board.submit(type="echo")
    end_all(board, 1)
    subscribe(board, URL, Event.DECIDED, Event.CANCELLED)
    board.decide("T-1", "reject")
    assert [it["due_at"] - it["at"] for it in noted(board)] == [timedelta(seconds=60)] * 2
    if written:
        write_out(board)
        assert [row["after"] is None for row in rows(board)] == [True, False]
    board.undo("T-1")
    write_out(board)
    assert rows(board) == []


def test_a_retry_and_a_second_round_are_no_new_start(working: OpenWorking) -> None:
    board = working(start=False)
    echo(board, review={"when": "always", "grace": "0s"})
    subscribe(board, URL, Event.STARTED)
    board.submit(type="echo")
    end_all(board, 1)
    board.decide("T-1", "revise", instruction="Better.")
    end_all(board, 1)
    assert [it["event"] for it in noted(board)] == ["task.started"]


def test_news_without_a_task(working: OpenWorking) -> None:
    board = working(start=False)
    subscribe(board, URL, types=("echo",))
    for _ in range(2):
        with board.board.db.write() as tx:
            subscriptions.note(tx, Event.REPORT_READY, "2026-W48", data={"week": "2026-W48"})
        write_out(board)
    [row] = rows(board)
    body = json.loads(row["body"])
    assert (body["event"], body["task"], body["data"]) == ("report.ready", None, {"week": "2026-W48"})


def test_an_overdue_review_is_told_with_its_task(working: OpenWorking) -> None:
    board = working(start=False)
    echo(board, review={"when": "always", "due": "1h"})
    board.submit(type="echo")
    end_all(board, 1)
    subscribe(board, URL, Event.OVERDUE)
    board.at(3700)
    heart = board.board
    assert overdue.look(heart.db, heart.ledger, heart.catalogue, heart.decisions) == 1
    write_out(board)
    [row] = rows(board)
    body = json.loads(row["body"])
    assert (body["event"], body["task"]["status"]) == ("review.overdue", "needs_review")
    assert body["seq"] == board.task()["event_seq"]


def test_sent_again_by_a_person(working: OpenWorking, receiver: Receiver) -> None:
    receiver.default = Reply(status=401)
    board = working()
    echo(board)
    it = subscribe(board, receiver.url, Event.CREATED, Event.DONE)
    board.submit(type="echo")
    board.until(lambda: [row["status"] for row in rows(board)] == ["rejected"] * 2)
    assert shown(board, it)["last"]["try"]["http_status"] == 401  # type: ignore[index]
    first = [request.headers["webhook-id"] for request in receiver.requests]
    receiver.default = Reply()
    with board.board.db.write() as tx:
        assert subscriptions.send_again(tx, it, READER) == 2
        board.board.wake_outbox(tx)
    confirmed(board, 2)
    assert sorted(request.headers["webhook-id"] for request in receiver.requests[2:]) == sorted(first)


def test_they_leave_with_their_tasks(working: OpenWorking) -> None:
    board = working(start=False)
    echo(board, review={"when": "never"}, retention="1d")
    it = subscribe(board, URL, Event.DONE)
    board.submit("T-1", type="echo")
    end_all(board, 1)
    board.at(2 * DAY)
    board.board.archive.run()
    assert board.task("T-1")["status"] == "done", "it is still to be told"
    write_out(board)
    unsubscribe(board, it)
    board.board.archive.run()
    with board.board.db.read() as connection:
        assert connection.execute(select(operations.c.id)).all() == []


def test_its_rows_are_found_by_an_index(working: OpenWorking) -> None:
    board = working(start=False)
    with board.board.db.read() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL enable_seqscan = off"))
        explain = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
        query = (
            "SELECT * FROM operations WHERE subscription IS NOT NULL AND subscription = 's' AND status = 'rejected' "
            "ORDER BY id DESC LIMIT 1"
        )
        plan = "\n".join(str(row) for row in connection.execute(text(f"{explain} {query}")))
    assert "ix_operations_subscription" in plan
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan


def test_every_event_of_the_contract_can_be_subscribed_to() -> None:
    listed = "created started needs_review done failed cancelled"
    others = ["review.decided", "review.overdue", "queue.alert", "report.ready"]
    assert [str(it) for it in EVERYTHING] == [f"task.{name}" for name in listed.split()] + others
