"""`n8n.webhook` on a board at work: started once, its callback is the result, or its answer where it is waited for."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from board.effects.incoming import Late
from integrations.n8n.webhook import N8nWebhook
from tests.effects.verify import verified
from tests.rig.calling import URL
from tests.rig.receiver import Receiver, Reply
from tests.rig.working import OpenWorking, WorkingBoard

SECRET = "a secret of the connection"

Open = Callable[..., WorkingBoard]


@pytest.fixture
def flow(working: OpenWorking, receiver: Receiver) -> Open:
    """A board whose type `flow` starts a workflow at the receiver; called again, a second worker of it."""

    def open_(*, handler: dict[str, Any] | None = None, again: bool = False, **parts: Any) -> WorkingBoard:
        board = working()
        if not again:
            board.apply(connections=[{"name": "n8n", "kind": "webhook", "url": receiver.url, "secret": SECRET}])
            use = {"connection": "n8n", "inputs": {"text": "{{ payload.text }}"}} | (handler or {})
            board.type("flow", use="n8n.webhook", handler=use, **parts)
            board.submit(type="flow", payload={"text": "你好"})
        return board

    return open_


def token(receiver: Receiver, number: int = 1) -> str:
    url = json.loads(receiver.wait_for(number)[number - 1].body)["callback_url"]
    assert url.startswith(URL)
    return str(url).removeprefix(URL)


def test_the_workflow_is_started_and_calls_back(flow: Open, receiver: Receiver) -> None:
    board = flow()
    [call] = receiver.wait_for(1)
    body = json.loads(call.body)
    assert body.pop("callback_url").startswith(URL)
    assert body == {
        "event": "task.work",
        "task_id": "T-1",
        "type": "flow",
        "priority": "P2",
        "round": 1,
        "attempt": 1,
        "inputs": {"text": "你好"},
    }
    assert verified(call, SECRET)
    board.board.incoming.take(
        token(receiver), {"status": "succeeded", "result": {"label": "ok"}, "external_reference": "231"}
    )
    board.wait("T-1", "done")
    assert board.data()["result"] == {"label": "ok"}
    [operation] = board.operations()
    assert (operation["kind"], operation["status"], operation["external_reference"]) == (
        "n8n.webhook",
        "confirmed",
        "231",
    )
    assert len(receiver.requests) == 1


def test_an_answer_that_repeats_the_address_does_not_get_it_stored(flow: Open, receiver: Receiver) -> None:
    receiver.default = Reply(echo=True)
    board = flow()
    secret = token(receiver)
    board.board.incoming.take(secret, {"status": "succeeded"})
    board.wait("T-1", "done")
    assert "task.work" in board.deliveries()[0]["detail"]
    assert secret not in board.dump()


def test_a_workflow_that_calls_back_before_it_has_answered(flow: Open, receiver: Receiver) -> None:
    """As one does whose Webhook node answers when its last node is done, and that one calls back."""
    receiver.default = Reply(hang=True)
    board = flow(handler={"timeout": "1h"})
    board.board.incoming.take(token(receiver), {"status": "succeeded", "result": "early"})
    assert board.task()["status"] == "running"
    receiver.close()
    board.wait("T-1", "done")
    assert board.data()["result"] == "early"
    assert len(receiver.requests) == 1


def test_a_lost_answer_proves_nothing_and_the_callback_everything(flow: Open, receiver: Receiver) -> None:
    """B013: the line is cut, and the workflow goes on."""
    receiver.default = Reply(close=True)
    board = flow()
    secret = token(receiver)
    consumer = board.board.consumer
    assert consumer is not None
    board.until(lambda: not consumer.holding.busy)
    assert board.task()["status"] == "running"
    board.board.incoming.take(secret, {"status": "succeeded", "result": 1})
    board.wait("T-1", "done")
    assert len(receiver.requests) == 1


def test_without_a_callback_in_time_a_person_is_asked(flow: Open, receiver: Receiver) -> None:
    board = flow(handler={"timeout": "200ms"})
    task = board.wait("T-1", "needs_review")
    assert board.reviews()[-1]["reason"] == "unknown_outcome"
    assert "n8n has not called back within 0.2 s." in task["last_error"]
    assert board.operations()[0]["status"] == "unknown"
    with pytest.raises(Late):
        board.board.incoming.take(token(receiver), {"status": "succeeded", "result": 7})
    assert board.events()[-1]["data"]["result"] == 7
    assert len(receiver.requests) == 1


def test_what_hurts_nobody_is_started_again(flow: Open, receiver: Receiver) -> None:
    board = flow(handler={"timeout": "300ms", "side_effects": False})
    first = token(receiver)
    second = token(receiver, 2)
    assert second != first
    with pytest.raises(Late):
        board.board.incoming.take(first, {"status": "succeeded", "result": "of the first"})


def test_a_workflow_that_does_not_exist_fails_at_once(flow: Open, receiver: Receiver) -> None:
    receiver.default = Reply(404, b'{"code": 404, "message": "The requested webhook is not registered."}')
    board = flow()
    task = board.wait("T-1", "failed")
    assert "answered 404" in task["last_error"]
    assert board.operations()[0]["status"] == "rejected"


def test_word_that_comes_while_no_worker_is_there(flow: Open, receiver: Receiver) -> None:
    """B033: it is in the database before it is confirmed, and nothing is started twice."""
    first = flow(handler={"timeout": "1h"})
    secret = token(receiver)
    first.stop()
    assert first.task()["status"] == "pending"
    first.board.incoming.take(secret, {"status": "succeeded", "result": "kept"})
    second = flow(again=True)
    second.wait("T-1", "done")
    assert second.data()["result"] == "kept"
    assert len(receiver.requests) == 1


def test_the_next_worker_waits_on(flow: Open, receiver: Receiver) -> None:
    first = flow(handler={"timeout": "1h"})
    secret = token(receiver)
    first.stop()
    second = flow(again=True)
    second.until(lambda: second.task()["lease_token"] == 2)
    second.board.incoming.take(secret, {"status": "progress", "percent": 50})
    assert second.attempts()[1]["progress"]["percent"] == 50
    second.board.incoming.take(secret, {"status": "succeeded", "result": "at last"})
    second.wait("T-1", "done")
    assert [attempt["outcome"] for attempt in second.attempts()] == ["handed_back", "succeeded"]
    assert len(receiver.requests) == 1


def test_a_cancelled_task_waits_no_more(flow: Open, receiver: Receiver) -> None:
    """B025."""
    board = flow(handler={"timeout": "1h"})
    secret = token(receiver)
    board.cancel("T-1")
    with pytest.raises(Late):
        board.board.incoming.take(secret, {"status": "succeeded", "result": 1})
    board.wait("T-1", "cancelled")
    assert board.operations()[0]["status"] == "unknown"
    assert board.data()["result"] is None


# -- the workflow's own answer --------------------------------------------------------------------------------------


def test_an_answer_that_is_waited_for_is_the_result(flow: Open, receiver: Receiver) -> None:
    receiver.default = Reply(body=json.dumps({"label": "ok", "long": "x" * 100_000}).encode())
    board = flow(handler={"wait": "blocking"})
    board.wait("T-1", "done")
    assert json.loads(receiver.requests[0].body)["callback_url"] is None
    assert board.data()["result"] == {"label": "ok", "long": "x" * 100_000}


@pytest.mark.parametrize(
    ("body", "reason", "result"),
    [
        (b"", "empty_output", None),
        (b"not JSON", "invalid_output", "not JSON"),
        (b'{"a": NaN}', "invalid_output", '{"a": NaN}'),
    ],
)
def test_an_answer_that_is_none_asks_a_person(
    flow: Open, receiver: Receiver, body: bytes, reason: str, result: Any
) -> None:
    receiver.default = Reply(body=body)
    board = flow(handler={"wait": "blocking"})
    board.wait("T-1", "needs_review")
    assert (board.reviews()[-1]["reason"], board.data()["result"]) == (reason, result)


def test_an_answer_that_is_lost_is_unknown(flow: Open, receiver: Receiver) -> None:
    receiver.default = Reply(close=True)
    board = flow(handler={"wait": "blocking"})
    board.wait("T-1", "needs_review")
    assert board.reviews()[-1]["reason"] == "unknown_outcome"
    assert len(receiver.requests) == 1


def test_inputs_must_be_an_object() -> None:
    assert N8nWebhook().check({"inputs": "text"}) == [
        ("inputs", "must be an object: what the workflow finds under `body.inputs`")
    ]
    assert N8nWebhook().check({"inputs": {}}) == []
