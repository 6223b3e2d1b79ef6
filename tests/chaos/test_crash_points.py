"""A real worker is killed at every point between reserving a call and closing it; another one takes over.

Where the target takes a repeat for a new order, it acts at most once; where it can be asked or drops repeats, exactly
once. Where nobody can tell, the task says so and shows what is known.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from board.effects import signing
from board.effects.scribe import TAKEN_SECONDS
from board.effects.subscriptions import Event
from tests.chaos.crashing_worker import OUTBOX_POINTS, POINTS, SUBSCRIPTION_POINTS
from tests.effects.subscribing import noted, rows, subscribe
from tests.effects.test_operation_keys import notes
from tests.rig.board import board_environment
from tests.rig.mail import MailServer
from tests.rig.reaper import Reaper
from tests.rig.receiver import Receiver, Reply
from tests.rig.standin import RunningStandin
from tests.rig.working import OpenWorking, WorkingBoard

SCRIPT = Path(__file__).with_name("crashing_worker.py")
WEBHOOK_POINTS = [point for point in POINTS if point != "after_reference"]
KEY = "webhook:hook:T-1"
Crash = Callable[[str, str], None]


@pytest.fixture
def board(working: OpenWorking) -> WorkingBoard:
    """The board that puts work in, looks on, and takes over once the worker is dead."""
    return working(start=False, lease="1s")


@pytest.fixture
def crash(database_url: str, tmp_path: Path, reaper: Reaper, pytestconfig: pytest.Config) -> Iterator[Crash]:
    """`crash("after_send", "act")`: a worker process works on the test's database until it dies at that point."""
    started: list[subprocess.Popen[bytes]] = []

    def run(point: str, phase: str) -> None:
        own = {
            "BOARD_DATABASE_URL": database_url,
            "BOARD_LEASE": "1s",
            "BOARD_CONCURRENCY": "2",
            "BOARD_ALLOW_PRIVATE_TARGETS": "127.0.0.1",
            "PYTHONPATH": os.pathsep.join([str(pytestconfig.rootpath), os.environ.get("PYTHONPATH", "")]),
        }
        with (tmp_path / "crashing.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, SCRIPT, point, phase],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=tmp_path,
                env=board_environment(tmp_path, own),
                start_new_session=True,
            )
        started.append(process)
        reaper.guard(process.pid)
        code = process.wait(60)
        reaper.release(process.pid)
        assert code == -signal.SIGKILL, (tmp_path / "crashing.log").read_text()[-3000:]

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


def publishing(board: WorkingBoard, url: str, **connection: Any) -> None:
    board.apply(connections=[{"name": "hook", "kind": "webhook", "url": url, "secret": "s3cret"} | connection])
    board.type("publish", use="echo", action={"use": "webhook", "connection": "hook"})
    board.submit(type="publish", payload={"text": "发布"})


def posts(receiver: Receiver) -> int:
    return sum(request.method == "POST" for request in receiver.requests)


@pytest.mark.parametrize("point", WEBHOOK_POINTS)
def test_a_receiver_that_knows_no_repeats(board: WorkingBoard, crash: Crash, receiver: Receiver, point: str) -> None:
    publishing(board, receiver.url)
    crash(point, "act")
    arrived = posts(receiver)
    board.start()
    if point in ("before_reserve", "after_close"):
        board.wait("T-1", "done", timeout=30)
        assert posts(receiver) == 1
        assert board.operations()[0]["status"] == "confirmed"
        return
    task = board.wait("T-1", "needs_review", timeout=30)
    [review], [operation] = board.reviews(), board.operations()
    assert (review["reason"], review["operation"]) == ("unknown_outcome", operation["id"])
    assert (operation["status"], operation["tries"]) == ("unknown", 1)
    assert "was sent, and no answer is known" in operation["last_error"]
    assert [kind for kind, _ in notes(board, KEY)] == ["asked", "unknown"]
    assert task["crash_count"] == 1
    assert posts(receiver) == arrived == (0 if point == "after_reserve" else 1)
    # A person looks there; what he finds decides, and the count of effects is one.
    board.decide("T-1", "happened" if arrived else "not_happened", reason="I have looked.")
    board.wait("T-1", "done", timeout=30)
    assert posts(receiver) == 1


@pytest.mark.parametrize("point", WEBHOOK_POINTS)
def test_a_receiver_that_drops_repeats(board: WorkingBoard, crash: Crash, receiver: Receiver, point: str) -> None:
    """B081: one id, before and after the crash; time and signature are fresh."""
    publishing(board, receiver.url, idempotent=True)
    crash(point, "act")
    board.start()
    board.wait("T-1", "done", timeout=30)
    assert len({request.headers["idempotency-key"] for request in receiver.requests}) == 1  # so it acted once
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
    assert len({request.body for request in receiver.requests}) == 1
    assert posts(receiver) == (2 if point in ("after_send", "before_close", "in_close") else 1)
    assert board.operations()[0]["status"] == "confirmed"


@pytest.mark.parametrize("point", WEBHOOK_POINTS)
def test_a_receiver_that_can_be_asked(board: WorkingBoard, crash: Crash, receiver: Receiver, point: str) -> None:
    url = f"{receiver.url}/calls/{{{{ key }}}}"
    publishing(board, receiver.url, status_url=url, grace="2s", reconcile_for="30s")
    crash(point, "act")
    knows = Reply(body=json.dumps({"status": "done", "reference": "post-77"}).encode())
    receiver.by_method["GET"] = knows if posts(receiver) else Reply(status=404)
    board.start()
    board.wait("T-1", "done", timeout=40)
    assert posts(receiver) == 1
    [operation] = board.operations()
    assert operation["status"] == "confirmed"
    if point in ("after_send", "before_close", "in_close"):
        assert operation["external_reference"] == "post-77"
        assert f"/calls/{signing.webhook_id(KEY)}" in {request.path for request in receiver.requests}


@pytest.mark.parametrize("point", WEBHOOK_POINTS)
def test_a_flow_that_waits(board: WorkingBoard, crash: Crash, receiver: Receiver, point: str) -> None:
    """B081: n8n continues an execution once, and says afterwards that it has finished: then it was continued before."""
    receiver.reply(Reply(body=b'{"message":"Workflow was started"}'))
    receiver.default = Reply(status=409, body=b'{"code":0,"message":"The execution \\"7\\" has finished already."}')
    board.type("ask", use="echo", action={"use": "resume"})
    board.submit(type="ask", callback_url=f"{receiver.url}/webhook-waiting/7?signature=s")
    crash(point, "act")
    board.start()
    board.wait("T-1", "done", timeout=30)
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
    assert len({request.body for request in receiver.requests}) == 1
    assert posts(receiver) == (2 if point in ("after_send", "before_close", "in_close") else 1)
    assert [operation["status"] for operation in board.operations()] == ["confirmed"]
    assert board.reviews() == []


@pytest.mark.parametrize("point", OUTBOX_POINTS)
def test_word_to_the_caller(board: WorkingBoard, crash: Crash, receiver: Receiver, point: str) -> None:
    """B081: at least once, under one id and with the same bytes, whatever dies when; the task has ended once."""
    board.type("told", use="echo")
    board.submit(type="told", payload={"n": 7}, callback_url=f"{receiver.url}/hook")
    crash(point, "work")
    ended, arrived = board.task(), posts(receiver)
    assert (ended["status"], arrived) == ("done", 0 if point in OUTBOX_POINTS[:4] else 1)
    board.at(TAKEN_SECONDS + 5)  # what a dead sender had taken is due again
    board.start()
    receiver.wait_for(1, timeout=30)
    board.until(lambda: [it["status"] for it in board.operations()] == ["confirmed"], timeout=30)
    [operation] = board.operations()
    again = point in ("told", "before_record", "in_record")
    assert posts(receiver) == (2 if again else 1)
    assert operation["tries"] == (2 if again or point == "taken" else 1)
    assert len(board.deliveries()) == 1
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
    assert {request.body for request in receiver.requests} == {operation["body"].encode()}
    assert json.loads(operation["body"])["seq"] == ended["event_seq"]
    assert board.kinds().count("done") == 1


@pytest.mark.parametrize("point", SUBSCRIPTION_POINTS)
def test_word_to_a_subscription(board: WorkingBoard, crash: Crash, receiver: Receiver, point: str) -> None:
    """B081: as to the caller."""
    board.type("told", use="echo")
    subscribe(board, f"{receiver.url}/hook", Event.DONE)
    board.submit(type="told", payload={"n": 7})
    crash(point, "work")
    assert (board.task()["status"], posts(receiver)) == ("done", 0 if point in SUBSCRIPTION_POINTS[:2] else 1)
    board.at(TAKEN_SECONDS + 5)  # what a dead sender had taken is due again
    board.start()
    receiver.wait_for(1, timeout=30)
    board.until(lambda: [row["status"] for row in rows(board)] == ["confirmed"], timeout=30)
    [operation] = rows(board)
    assert posts(receiver) == operation["tries"] == (1 if point in SUBSCRIPTION_POINTS[:2] else 2)
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
    assert {request.body for request in receiver.requests} == {operation["body"].encode()}
    assert noted(board) == []


@pytest.mark.parametrize("point", POINTS)
def test_a_mail(board: WorkingBoard, crash: Crash, mail_server: MailServer, point: str) -> None:
    """A mail is written once. Where the server's "taken" is not kept, a person looks for the Message-ID in its log."""
    post = {"name": "post", "kind": "mail", "url": mail_server.url, "sender": "board@example.org"}
    inputs = {"to": "li@example.org", "subject": "Paid", "text": "It is paid."}
    board.apply(connections=[post])
    board.type("write", use="echo", action={"use": "mail", "connection": "post", "inputs": inputs})
    board.submit(type="write")
    crash(point, "act")
    written = len(mail_server.mails)
    board.start()
    if point in ("after_reserve", "after_send"):
        task = board.wait("T-1", "needs_review", timeout=30)
        [review], [operation] = board.reviews(), board.operations()
        assert (review["reason"], operation["status"]) == ("unknown_outcome", "unknown")
        message_id = re.search("Message-ID: (<.*>)", operation["body"])
        assert message_id is not None
        assert f"Look for Message-ID {message_id[1]}" in task["last_error"]
        assert len(mail_server.mails) == written == (0 if point == "after_reserve" else 1)
        board.decide("T-1", "happened" if written else "not_happened", reason="I have looked.")
    board.wait("T-1", "done", timeout=30)
    [mail] = mail_server.mails
    [operation] = board.operations()
    assert operation["status"] == "confirmed"
    if point != "after_send":
        assert operation["external_reference"] == mail.parsed["Message-ID"]


@pytest.mark.parametrize("point", POINTS)
def test_a_run_in_dify(board: WorkingBoard, crash: Crash, dify_standin: RunningStandin, point: str) -> None:
    """B013: one paid run, whatever dies when."""
    dify = {"name": "dify", "kind": "dify", "url": dify_standin.api_url, "key": "app-demo-leads", "grace": "2s"}
    board.apply(connections=[dify])
    board.type("lead", use="dify.workflow", handler={"connection": "dify"})
    board.submit(type="lead", payload={"text": "A quote, please."})
    crash(point, "work")
    board.start()
    task = board.wait("T-1", "done", timeout=40)
    [run] = dify_standin.app.state.runs
    [operation] = board.operations()
    assert (operation["status"], operation["external_reference"]) == ("confirmed", run.id)
    assert operation["tries"] == (2 if point == "after_reserve" else 1)
    assert task["retry_count"] == 0
    assert board.data()["result"]["label"]
