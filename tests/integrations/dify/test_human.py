"""Dify's Human Input node: what a person is asked, and how his answer goes on with the same run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from board.ports import Failure, FormAnswer, NeedsInput, Success
from integrations.dify.chat import Chat
from integrations.dify.follow import Pace
from integrations.dify.workflow import Workflow
from tests.integrations.dify.conftest import Standin
from tests.integrations.dify.doubles import NotedJob, connection
from tests.integrations.dify.test_reconcile import operation

PACE = Pace(first=0.05, cap=0.2)
BOTH = pytest.mark.parametrize(
    ("handler", "key", "inputs"),
    [
        (Workflow(PACE), "app-demo-leads", {"text": "We need 200 seats."}),
        (Chat(PACE), "app-demo-chatflow", {"query": "We need 200 seats."}),
    ],
    ids=["workflow", "chatflow"],
)


def job(standin: Standin, key: str = "app-demo-leads", inputs: Any = None, **more: Any) -> NotedJob:
    return NotedJob(connection(standin.url, key), inputs or {"text": "We need 200 seats."}, **more)


def answer(asked: NeedsInput, action: str = "approve", **inputs: Any) -> Any:
    said = FormAnswer(asked.form["id"], action, inputs or {"remark": "Go ahead."})
    return replace(operation(asked.reference, seconds_ago=86_400), answer=said)


def calls(standin: Standin, part: str) -> list[dict[str, Any]]:
    return [entry for entry in standin.seen()["requests"] if part in entry["path"]]


@BOTH
@pytest.mark.parametrize("wait", ["stream", "blocking"])
async def test_a_form_is_asked_and_its_answer_goes_on_with_the_same_run(
    standin: Standin, handler: Workflow, key: str, inputs: dict[str, Any], wait: Any
) -> None:
    standin.faults("paused")
    asked = await handler.run(job(standin, key, inputs, wait=wait))
    assert isinstance(asked, NeedsInput)
    assert asked.message == "The workflow waits for a person: Ask a person."
    assert asked.form["content"] == "Demo stand-in: may this go out?"
    assert asked.form["fields"] == [{"name": "remark", "kind": "text", "options": [], "default": None}]
    assert asked.form["actions"] == [{"id": "approve", "title": "Approve"}, {"id": "reject", "title": "Reject"}]
    assert asked.form["expires_at"].endswith("+00:00")
    assert "token" not in str(asked.form)
    later = job(standin, key, inputs, user="board:1:2")
    outcome = await handler.reconcile(later, answer(asked))
    assert isinstance(outcome, Success)
    assert outcome.result
    assert "".join(later.texts)  # it was watched, not only asked about
    [given] = calls(standin, "/form/human_input/")
    assert given["body"] == {"inputs": {"remark": "Go ahead."}, "action": "approve", "user": "board:1:1"}
    [started] = standin.seen()["runs"]
    assert started["status"] == "succeeded"


async def test_the_stream_is_open_before_the_answer_is_given(standin: Standin) -> None:
    """What the run says right after the answer would else be lost."""
    standin.faults("paused")
    asked = await Workflow(PACE).run(job(standin))
    await Workflow(PACE).reconcile(job(standin), answer(asked))
    paths = [entry["path"] for entry in standin.seen()["requests"]]
    opened = next(i for i, path in enumerate(paths) if path.endswith("/events"))
    assert opened < next(i for i, path in enumerate(paths) if "/form/human_input/" in path)


async def test_a_second_form_is_asked_in_its_turn(standin: Standin) -> None:
    standin.faults({"fault": "paused", "pauses": 2})
    first = await Workflow(PACE).run(job(standin))
    second = await Workflow(PACE).reconcile(job(standin), answer(first))
    assert isinstance(second, NeedsInput)
    assert second.form["id"] != first.form["id"]
    again = await Workflow(PACE).reconcile(job(standin), answer(first))  # a worker died after the first answer
    assert isinstance(again, NeedsInput)
    assert again.form["id"] == second.form["id"]
    assert len(calls(standin, "/form/human_input/")) == 1
    assert isinstance(await Workflow(PACE).reconcile(job(standin), answer(second)), Success)


async def test_an_answer_that_dify_refuses_is_asked_for_again(standin: Standin) -> None:
    standin.faults("paused")
    asked = await Workflow(PACE).run(job(standin))
    again = await Workflow(PACE).reconcile(job(standin), answer(asked, action="burn"))
    assert isinstance(again, NeedsInput)
    assert again.form["id"] == asked.form["id"]
    assert again.form["actions"] == asked.form["actions"]
    assert "Invalid action: burn" in again.message


async def test_a_form_that_expired_goes_its_own_way_and_the_answer_is_too_late(standin: Standin) -> None:
    standin.faults({"fault": "paused", "form_seconds": 0.3})
    asked = await Workflow(PACE).run(job(standin))
    assert isinstance(asked, NeedsInput)
    outcome = await Workflow(PACE).reconcile(job(standin), replace(answer(asked), answer=None))
    if isinstance(outcome, NeedsInput):  # not yet
        outcome = await Workflow(PACE).reconcile(job(standin), answer(asked))
    assert isinstance(outcome, Success)


async def test_a_lost_answer_to_the_form_is_given_again_by_the_next_attempt(standin: Standin) -> None:
    standin.faults("paused", {"fault": "http", "on": "form", "http_status": 502, "body": "<html>no</html>"})
    asked = await Workflow(PACE).run(job(standin))
    lost = await Workflow(PACE).reconcile(job(standin), answer(asked))
    assert isinstance(lost, Failure)
    assert lost.open_operation
    assert isinstance(await Workflow(PACE).reconcile(job(standin), answer(asked)), Success)


async def test_a_form_without_a_token_is_answered_in_dify(standin: Standin) -> None:
    standin.faults({"fault": "paused", "web_form": False})
    asked = await Workflow(PACE).run(job(standin))
    assert isinstance(asked, NeedsInput)
    assert (asked.form["fields"], asked.form["actions"]) == ([], [{"id": "look_again", "title": None}])
    assert "only be answered in Dify" in asked.message
    again = await Workflow(PACE).reconcile(job(standin), answer(asked, action="look_again"))
    assert isinstance(again, NeedsInput)  # nobody has answered it there
    assert calls(standin, "/form/human_input/") == []


async def test_an_old_dify_that_shows_no_form_is_answered_there(standin: Standin) -> None:
    standin.faults("paused", {"fault": "http", "on": "events", "http_status": 404, "code": "not_found", "times": 9})
    asked = await Workflow(PACE).run(job(standin))
    again = await Workflow(PACE).reconcile(job(standin), replace(answer(asked), answer=None))
    assert isinstance(again, NeedsInput)
    assert again.form["actions"] == [{"id": "look_again", "title": None}]
