"""The action `resume`: a flow of n8n that waits is continued once, whatever n8n answers on the way."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from board.catalogue.apply import BadCatalogue
from board.effects import backoff, resume
from board.tasks.intake import Problem
from board.tasks.requeue import requeue
from tests.effects.verify import verified
from tests.rig.ports import free_port
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import CALLER, OpenWorking, WorkingBoard

DAY = 86400.0
SIGNATURE = "5ec7e7"
HTML = {"Content-Type": "text/html; charset=utf-8"}


def said(status: int, message: str) -> Reply:
    """An answer of n8n in its own shape."""
    return Reply(status=status, body=json.dumps({"code": 0, "message": message}).encode())


CONTINUED = said(200, "Workflow was started")
EARLY = said(409, 'The execution "7" is running already.')
FINISHED = said(409, 'The execution "7" has finished already.')
CANCELLED = said(409, 'The execution "7" has finished with error.')
DELETED = said(404, 'The execution "7" does not exist.')
WRONG_PATH = said(404, 'The workflow for execution "7" does not contain a waiting webhook with a matching path/method.')
BAD_TOKEN = Reply(status=401, body=b'{"error":"Invalid token"}')
BAD_HEADER = Reply(status=403, body=b"Authorization data is wrong!", headers=HTML)
BOOTING = Reply(body=b"n8n is starting up. Please wait", headers=HTML)
NO_ROUTE = Reply(status=404, body=b"<!DOCTYPE html><pre>Cannot POST /webhook-waiting/7</pre>", headers=HTML)
BUSY = said(503, "Database is not ready!")
BROKEN = said(500, "There was a problem executing the workflow")


def waiting_flow(board: WorkingBoard, receiver: Receiver, **parts: Any) -> str:
    """A type that resumes, and the address at which a flow waits."""
    receiver.default = CONTINUED
    board.type("ask", use="echo", action={"use": "resume"}, **parts)
    return f"{receiver.url}/webhook-waiting/7?signature={SIGNATURE}"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "BASE_SECONDS", 0.02)
    monkeypatch.setattr(backoff, "EARLY_SECONDS", 0.02)


def test_the_flow_is_resumed_once_with_the_result_and_told_nothing_else(
    working: OpenWorking, receiver: Receiver
) -> None:
    board = working()
    url = waiting_flow(board, receiver)
    board.submit(type="ask", payload={"n": 7}, callback_url=url)
    task = board.wait("T-1", "done")
    [request] = receiver.wait_for(1)
    assert request.path == f"/webhook-waiting/7?signature={SIGNATURE}"
    assert verified(request, board.board.webhook_secret)
    body = json.loads(request.body)
    assert (body["event"], body["task"]["task_id"], body["task"]["result"]) == ("task.action", "T-1", {"n": 7})
    [operation] = board.operations()
    assert (operation["kind"], operation["status"], operation["tries"]) == ("webhook.resume", "confirmed", 1)
    assert SIGNATURE not in operation["target"]
    assert task["phase"] == "act"
    assert len(receiver.requests) == 1


def test_a_person_approves_before_the_flow_goes_on(working_sqlite: OpenWorking, receiver: Receiver) -> None:
    board = working_sqlite()
    url = waiting_flow(board, receiver, review={"when": "always", "grace": "0s"})
    board.submit(type="ask", callback_url=url)
    board.wait("T-1", "needs_review")
    assert receiver.requests == []
    board.decide("T-1", "approve", reason="fits")
    board.wait("T-1", "done")
    [request] = receiver.wait_for(1)
    assert json.loads(request.body)["decision"]["reason"] == "fits"


@pytest.mark.parametrize("listed", [["done"], ["done", "failed", "cancelled"]])
def test_who_waits_hears_of_a_rejection_whatever_the_type_lists(
    working_sqlite: OpenWorking, receiver: Receiver, listed: list[str]
) -> None:
    board = working_sqlite()
    url = waiting_flow(board, receiver, review={"when": "always", "grace": "0s"}, callback={"events": listed})
    board.submit(type="ask", callback_url=url)
    board.wait("T-1", "needs_review")
    board.decide("T-1", "reject", reason="no", reason_class="wrong")
    board.wait("T-1", "cancelled")
    [request] = receiver.wait_for(1)
    assert (request.path, json.loads(request.body)["event"]) == (url.removeprefix(receiver.url), "task.cancelled")


@pytest.mark.parametrize(
    "replies",
    [
        pytest.param([EARLY, EARLY], id="too early"),
        pytest.param([BOOTING, NO_ROUTE], id="starting"),
        pytest.param([BROKEN], id="500"),
        pytest.param([Reply(close=True), EARLY], id="lost"),
        pytest.param([BUSY, Reply(status=429, headers={"Retry-After": "0"})], id="429"),
    ],
)
def test_what_passes_is_waited_for_and_spends_no_retry(
    working: OpenWorking, receiver: Receiver, replies: list[Reply]
) -> None:
    receiver.reply(*replies)
    board = working()
    url = waiting_flow(board, receiver, retry={"max": 0})
    board.submit(type="ask", callback_url=url)
    task = board.wait("T-1", "done")
    requests = receiver.wait_for(len(replies) + 1)
    assert (task["retry_count"], task["last_error"]) == (0, None)
    assert len({request.body for request in requests}) == 1
    assert len({request.headers["webhook-id"] for request in requests}) == 1
    assert all(verified(request, board.board.webhook_secret) for request in requests)
    [operation] = board.operations()
    assert (operation["status"], operation["tries"]) == ("confirmed", len(replies) + 1)
    assert len(board.deliveries()) == len(replies) + 1
    assert board.reviews() == []


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        pytest.param(FINISHED, "has ended already", id="finished"),
        pytest.param(CANCELLED, "was cancelled or has failed", id="cancelled"),
        pytest.param(DELETED, "knows no such execution any more", id="deleted"),
        pytest.param(WRONG_PATH, "no Wait node waits there for a POST", id="wrong path"),
        pytest.param(BAD_TOKEN, "with its signature", id="bad token"),
        pytest.param(BAD_HEADER, "asks for a header or password", id="header auth"),
        pytest.param(Reply(status=302, headers={"Location": "/signin"}), "moved to", id="moved"),
        pytest.param(said(400, "Bad request"), "refused the call", id="400"),
    ],
)
def test_a_dead_address_fails_at_once_with_the_reason_and_is_not_called_again(
    working: OpenWorking, receiver: Receiver, reply: Reply, words: str
) -> None:
    receiver.reply(reply, reply)
    board = working()
    url = waiting_flow(board, receiver)
    board.submit(type="ask", payload={"n": 7}, callback_url=url)
    task = board.wait("T-1", "failed")
    assert words in task["last_error"]
    assert SIGNATURE not in task["last_error"]
    assert board.data()["result"] == {"n": 7}
    board.until(lambda: board.operations()[-1]["status"] == "rejected" and len(board.deliveries()) == 2)
    resumed, told = board.operations()
    assert (resumed["kind"], resumed["status"]) == ("webhook.resume", "rejected")
    assert (told["kind"], told["status"], told["tries"]) == ("webhook.callback", "rejected", 1)
    assert words in resumed["last_error"]
    assert words in told["last_error"]
    assert [it["outcome"] for it in board.deliveries()] == ["rejected", "rejected"]
    assert [json.loads(request.body)["event"] for request in receiver.requests] == ["task.action", "task.failed"]


@pytest.mark.parametrize("reply", [Reply(close=True), BROKEN])
@pytest.mark.parametrize("last", [FINISHED, CANCELLED])
def test_ended_after_a_lost_answer_means_that_it_was_continued(
    working: OpenWorking, receiver: Receiver, reply: Reply, last: Reply
) -> None:
    receiver.reply(reply, EARLY, last)
    board = working()
    url = waiting_flow(board, receiver)
    board.submit(type="ask", callback_url=url)
    board.wait("T-1", "done")
    assert len(receiver.wait_for(3)) == 3
    assert [operation["status"] for operation in board.operations()] == ["confirmed"]


def test_ended_after_tries_that_came_too_early_means_that_it_ended_without_us(
    working: OpenWorking, receiver: Receiver
) -> None:
    receiver.reply(EARLY, NO_ROUTE, FINISHED, FINISHED)
    board = working()
    url = waiting_flow(board, receiver)
    board.submit(type="ask", callback_url=url)
    assert "has ended already" in board.wait("T-1", "failed")["last_error"]


def test_a_flow_that_never_comes_to_its_wait_node_is_given_up_after_minutes(
    working: OpenWorking, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "EARLY_SECONDS", 5.0)
    board = working()
    url = waiting_flow(board, receiver, retry={"max": 1})
    receiver.default = EARLY
    board.submit(type="ask", callback_url=url)
    waiting = board.wait("T-1", "retrying")
    assert "not come to its Wait node yet" in waiting["last_error"]
    board.at(resume.EARLY_FOR + 1)
    task = board.wait("T-1", "failed")
    assert (task["retry_count"], "not come to its Wait node" in task["last_error"]) == (1, True)
    resumed = [request for request in receiver.requests if json.loads(request.body)["event"] == "task.action"]
    assert len(resumed) == 3  # the first, the one after five minutes, and the type's one retry


def test_an_n8n_that_is_down_gets_its_word_for_three_days_and_a_requeue_tries_afresh(
    working: OpenWorking, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "BASE_SECONDS", 3600.0)
    board = working()
    waiting_flow(board, receiver, retry={"max": 0}, callback={"events": ["done"]})
    port = free_port()
    board.submit(type="ask", callback_url=f"http://127.0.0.1:{port}/webhook-waiting/7")
    board.wait("T-1", "retrying")
    board.at(2.9 * DAY)
    board.until(lambda: board.operations()[0]["tries"] == 2)
    board.wait("T-1", "retrying")
    board.at(4 * DAY)
    assert "could not be reached" in board.wait("T-1", "failed")["last_error"]
    assert board.operations()[0]["status"] == "rejected"
    heart = board.board
    with heart.db.write() as tx:
        requeue(tx, heart.ledger, heart.catalogue, board.task()["id"], CALLER)
    board.wait("T-1", "failed")
    assert board.operations()[0]["tries"] == 4


def test_a_call_that_hangs_ends_in_time(
    working_sqlite: OpenWorking, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.reply(Reply(hang=True))
    board = working_sqlite()
    url = waiting_flow(board, receiver, handler={"timeout": "500ms"})
    board.submit(type="ask", callback_url=url)
    board.wait("T-1", "done")
    assert [it["outcome"] for it in board.deliveries()] == ["unknown", "confirmed"]


def test_cancelled_while_n8n_is_down_asks_nobody(working: OpenWorking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "BASE_SECONDS", 3600.0)
    board = working()
    board.type("ask", use="echo", action={"use": "resume"})
    board.submit(type="ask", callback_url=f"http://127.0.0.1:{free_port()}/webhook-waiting/7")
    board.wait("T-1", "retrying")
    board.cancel("T-1")
    board.wait("T-1", "cancelled")
    assert (board.operations()[0]["status"], board.reviews()) == ("rejected", [])


def test_without_an_address_it_is_refused_at_the_door(working_sqlite: OpenWorking) -> None:
    board = working_sqlite(start=False)
    board.type("ask", use="echo", action={"use": "resume"})
    with pytest.raises(Problem) as refused:
        board.submit(type="ask")
    assert (refused.value.field, refused.value.code) == ("callback_url", "callback_url_missing")


def test_it_needs_no_connection(working_sqlite: OpenWorking) -> None:
    board = working_sqlite(start=False)
    with pytest.raises(BadCatalogue) as refused:
        board.type("ask", use="echo", action={"use": "resume", "connection": "n8n"})
    assert [path for path, _ in refused.value.problems] == ["types[0].action.connection"]


def test_addresses_that_name_an_unreachable_host_are_rewritten(working: OpenWorking, receiver: Receiver) -> None:
    """For the resume call and for ordinary events; what a rule leads to is allowed by the rule."""
    board = working(callback_rewrite=f"http://localhost:5678={receiver.url}", allow_private_targets=[])
    waiting_flow(board, receiver)
    board.type("told", use="echo")
    board.submit("T-1", type="ask", callback_url="http://localhost:5678/webhook-waiting/7?signature=s")
    board.wait("T-1", "done")
    board.submit("T-2", type="told", callback_url="http://LOCALHOST:5678/hook")
    board.wait("T-2", "done")
    receiver.wait_for(2)
    assert [request.path for request in receiver.requests] == ["/webhook-waiting/7?signature=s", "/hook"]
    with pytest.raises(Problem):
        board.submit("T-3", type="told", callback_url="http://localhost:5679/hook")


AUTHS: dict[str, tuple[dict[str, Any], Callable[[Mapping[str, str]], bool]]] = {
    "header": ({"header": {"X-Wait": "open-sesame"}}, lambda headers: headers.get("x-wait") == "open-sesame"),
    "basic": (
        {"basic": {"user": "n8n", "password": "pw"}},
        lambda headers: headers.get("authorization") == "Basic bjhuOnB3",
    ),
    "jwt": ({"jwt": {"secret": "s" * 32}}, lambda headers: headers.get("authorization", "").startswith("Bearer ey")),
}


@pytest.mark.parametrize("kind", AUTHS)
def test_a_wait_node_that_asks_for_more_than_its_address(working: OpenWorking, receiver: Receiver, kind: str) -> None:
    """The call that resumes, and word of a rejection, which comes to the same node, both sign in."""
    auth, signed_in = AUTHS[kind]
    receiver.default = CONTINUED
    board = working(allow_private_targets=[])  # the connection has allowed its own server
    board.apply(connections=[{"name": "n8n", "kind": "webhook", "url": receiver.url, "auth": auth}])
    board.type(
        "ask", use="echo", review={"when": "always", "grace": "0s"}, action={"use": "resume", "connection": "n8n"}
    )
    for task_id, verdict, status in [("T-1", "approve", "done"), ("T-2", "reject", "cancelled")]:
        board.submit(task_id, type="ask", callback_url=f"{receiver.url}/webhook-waiting/{task_id}")
        board.wait(task_id, "needs_review")
        board.decide(task_id, verdict)
        board.wait(task_id, status)
    one, two = receiver.wait_for(2)
    assert [json.loads(it.body)["event"] for it in (one, two)] == ["task.action", "task.cancelled"]
    for request in (one, two):
        assert signed_in(request.headers)
        assert verified(request, board.board.webhook_secret)
    board.until(lambda: board.operations("T-2")[-1]["status"] == "confirmed")
    assert "open-sesame" not in board.dump()


def test_what_a_connection_signs_in_with_goes_to_its_own_server_only(working: OpenWorking, receiver: Receiver) -> None:
    """Callers choose the address: another one would be handed the password. Refused at the door, and at each call."""
    board = working(start=False)
    own = f"http://127.0.0.1:{free_port()}"
    board.apply(connections=[{"name": "n8n", "kind": "webhook", "url": own, "auth": AUTHS["header"][0]}])
    board.type(
        "ask", use="echo", review={"when": "always", "grace": "0s"}, action={"use": "resume", "connection": "n8n"}
    )
    for elsewhere in (receiver.url, own.replace("http:", "https:"), own.replace("127.0.0.1", "localhost")):
        with pytest.raises(Problem) as refused:
            board.submit(type="ask", callback_url=f"{elsewhere}/webhook-waiting/7")
        assert (refused.value.field, refused.value.code) == ("callback_url", "address_refused")
        assert "goes nowhere else" in str(refused.value)
    for task_id in ("T-1", "T-2"):
        board.submit(task_id, type="ask", callback_url=f"{own}/webhook-waiting/7")
    board.apply(connections=[{"name": "n8n", "kind": "webhook", "url": receiver.url, "auth": AUTHS["header"][0]}])
    board.start()
    for task_id, verdict, status in [("T-1", "approve", "failed"), ("T-2", "reject", "cancelled")]:
        board.wait(task_id, "needs_review")
        board.decide(task_id, verdict)
        board.wait(task_id, status)
    board.until(lambda: board.operations("T-2")[-1]["status"] == "rejected")
    assert "goes nowhere else" in board.operations("T-2")[-1]["last_error"]
    assert "goes nowhere else" in board.task("T-1")["last_error"]
    assert receiver.requests == []
