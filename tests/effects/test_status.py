"""Receivers that can be asked what became of a call: the answer decides, and until it is known nothing is sent."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from board.catalogue.status_spec import StatusAnswer
from board.effects import signing, status
from board.ports import Answer, ConnectionView, Failure, NotStarted, SentOperation, Success
from tests.effects.test_actions import SECRET, publishing
from tests.effects.test_operation_keys import notes
from tests.effects.verify import verified
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import OpenWorking, WorkingBoard

KEY = "webhook:hook:T-1"


def askable(board: WorkingBoard, receiver: Receiver, **connection: Any) -> None:
    """The first call is answered 500; what follows is asked."""
    receiver.reply(Reply(status=500))
    given = {"status_url": f"{receiver.url}/calls/{{{{ key }}}}", "grace": "2s", "reconcile_for": "8s"}
    publishing(board, receiver.url, **(given | connection))


def says(word: str, **more: Any) -> Reply:
    return Reply(body=json.dumps({"status": word, **more}).encode())


def calls(receiver: Receiver) -> list[str]:
    return [f"{it.method} {it.path}" for it in receiver.requests]


def test_a_lost_answer_is_asked_about_and_the_call_is_not_repeated(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    askable(board, receiver, auth={"header": {"X-Token": "t0k"}})
    receiver.reply(says("processing"), says("done", reference="post-77"))
    board.submit(type="publish")
    task = board.wait("T-1", "done")
    question = f"GET /calls/{signing.webhook_id(KEY)}"
    assert calls(receiver) == ["POST /", question, question]
    assert all(it.headers["x-token"] == "t0k" and verified(it, SECRET) for it in receiver.requests)
    assert (task["retry_count"], task["reconciling"]) == (0, False)
    assert board.kinds()[3:] == ["started", "reconcile_planned", "started", "reconcile_planned", "started", "done"]
    [operation] = board.operations()
    assert (operation["status"], operation["external_reference"]) == ("confirmed", "post-77")
    assert (operation["tries"], operation["asks"]) == (1, 2)
    assert [kind for kind, _ in notes(board, KEY)] == ["asked", "asked"]
    assert notes(board, KEY)[-1][1] == "It took effect. Its number there: post-77"


def test_while_it_is_asked_the_task_says_so(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    askable(board, receiver)
    board.type(
        "publish", use="echo", action={"use": "webhook", "connection": "hook"}, retry={"base": "10m", "cap": "10m"}
    )
    askable_for_long = {"name": "hook", "kind": "webhook", "url": receiver.url, "reconcile_for": "1h"}
    board.apply(connections=[askable_for_long | {"status_url": f"{receiver.url}/calls/{{{{ key }}}}"}])
    board.submit(type="publish")
    task = board.wait("T-1", "retrying")
    with board.board.db.read() as connection:
        document = board.board.task_document(connection, task)
    assert document["waiting_for"]["code"] == "reconciling"
    assert "what became of a call" in document["waiting_for"]["message"]
    assert (document["retry_count"], document["error_class"]) == (0, "unknown")


def test_a_call_that_never_arrived_is_sent_once_more_after_the_grace_time(
    working: OpenWorking, receiver: Receiver
) -> None:
    board = working()
    askable(board, receiver)
    receiver.by_method["GET"] = Reply(status=404)
    board.submit(type="publish")
    board.wait("T-1", "done")
    first_call, *questions, last_call = calls(receiver)
    assert (first_call, set(questions), last_call) == ("POST /", {f"GET /calls/{signing.webhook_id(KEY)}"}, "POST /")
    assert len(questions) >= 2  # one inside the grace time proves nothing
    first, second = (it for it in receiver.requests if it.method == "POST")
    assert first.body == second.body
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


def test_a_call_that_failed_there_fails_here_and_is_not_repeated(working: OpenWorking, receiver: Receiver) -> None:
    board = working()
    askable(board, receiver)
    receiver.reply(says("failed"))
    board.submit(type="publish")
    task = board.wait("T-1", "failed")
    assert "says “failed”: the call was carried out and failed there" in task["last_error"]
    assert board.operations()[0]["status"] == "rejected"
    assert [it.method for it in receiver.requests] == ["POST", "GET"]


@pytest.mark.parametrize("reply", [says("processing"), says("maybe"), Reply(status=500), Reply(status=403)])
def test_when_the_time_is_over_and_nothing_is_proven_a_person_is_asked(
    working: OpenWorking, receiver: Receiver, reply: Reply
) -> None:
    board = working()
    askable(board, receiver, reconcile_for="1s")
    receiver.default = reply
    board.submit(type="publish")
    task = board.wait("T-1", "needs_review")
    assert (board.reviews()[0]["reason"], task["retry_count"]) == ("unknown_outcome", 0)
    assert board.operations()[0]["status"] == "unknown"
    methods = [it.method for it in receiver.requests]
    assert methods[0] == "POST"
    assert set(methods[1:]) == {"GET"}
    kinds = [kind for kind, _ in notes(board, KEY)]
    assert kinds == ["asked"] * (len(methods) - 1) + ["unknown"]
    receiver.default = Reply(status=200)
    board.decide("T-1", "not_happened", reason="Nothing there.")
    board.wait("T-1", "done")
    assert [it.method for it in receiver.requests].count("POST") == 2


def test_where_repeats_do_no_harm_nobody_is_asked(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    askable(board, receiver, idempotent=True)
    board.submit(type="publish")
    board.wait("T-1", "done")
    assert calls(receiver) == ["POST /", "POST /"]


def view(**options: Any) -> ConnectionView:
    given = {"status_url": "https://pay.example.org/calls/{{ key }}?op={{ operation_key }}"}
    return ConnectionView("pay", "webhook", "https://pay.example.org/charge", given | options, {})


def sent(seconds_ago: float = 0) -> SentOperation:
    moment = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    return SentOperation("invoice:7 &?/v1", "webhook.action", "https://pay.example.org/charge", "u", None, moment)


def test_the_key_stands_in_the_address_as_one_part() -> None:
    wire = signing.webhook_id("invoice:7 &?/v1")
    assert status.url(view(), sent()) == f"https://pay.example.org/calls/{wire}?op=invoice%3A7%20%26%3F%2Fv1"


@pytest.mark.parametrize(
    ("code", "body", "age", "meaning"),
    [
        (200, b'{"status": "Succeeded "}', 0, "took effect"),
        (202, b'{"status": "ok", "reference": 77}', 0, "took effect"),
        (200, b'{"status": "FAILED"}', 0, "failed"),
        (200, b'{"status": "running"}', 0, "open"),
        (200, b'{"status": true}', 0, "open"),
        (200, b"{}", 0, "open"),
        (200, b"[1]", 0, "open"),
        (200, b"<html>", 0, "open"),
        (200, b"", 0, "open"),
        (404, b"<html>", 10, "open"),
        (404, b"{}", 61, "never"),
        (410, b"", 61, "never"),
        (200, b'{"status": "not_found"}', 10, "open"),
        (200, b'{"status": "not_found"}', 61, "never"),
        (301, b"", 61, "open"),
        (401, b"", 61, "open"),
        (429, b"", 61, "open"),
        (503, b"", 61, "open"),
    ],
)
def test_what_an_answer_means(code: int, body: bytes, age: float, meaning: str) -> None:
    outcome = status.read(view(), sent(age), Answer(code, {}, body), "https://pay.example.org/…")
    match outcome:
        case Success():
            found = "took effect"
        case NotStarted():
            found = "never"
        case Failure(open_operation=True):
            found = "open"
        case Failure():
            found = "failed"
        case _:
            raise AssertionError(outcome)
    assert found == meaning


def test_words_and_places_of_the_receivers_own() -> None:
    form = {"field": "data.state", "reference": "data.charge.id", "confirmed": ["PAID"], "pending": ["new"]}
    body = json.dumps({"data": {"state": "paid", "charge": {"id": "ch_9"}}}).encode()
    answer = status.read(view(status_answer=form), sent(), Answer(200, {}, body), "x")
    assert answer == Success(reference="ch_9")
    body = json.dumps({"data": {"state": "done"}}).encode()  # its list has taken the place of the usual one
    assert isinstance(status.read(view(status_answer=form), sent(), Answer(200, {}, body), "x"), Failure)
    assert StatusAnswer().meaning(None) is None
