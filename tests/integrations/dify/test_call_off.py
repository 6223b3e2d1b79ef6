"""Runs of cancelled tasks that no attempt holds: stopped where Dify lets that be, and told as Dify shows it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from board.ports import NeedsInput, NotSent, Withdrawn
from integrations.dify.app import App
from integrations.dify.chat import Chat, Completion
from integrations.dify.follow import Pace
from integrations.dify.workflow import Workflow
from tests.integrations.dify.conftest import Standin
from tests.integrations.dify.doubles import NotedJob, WatchedHttp, connection
from tests.integrations.dify.test_reconcile import operation, start_and_die

PACE = Pace(first=0.05, cap=0.2)
BOTH = pytest.mark.parametrize(
    ("handler", "key", "inputs"),
    [
        (Workflow(PACE), "app-demo-leads", {"text": "We need 200 seats."}),
        (Chat(PACE), "app-demo-chatflow", {"query": "We need 200 seats."}),
    ],
    ids=["workflow", "chatflow"],
)


async def wait_with_form(standin: Standin, handler: App, key: str, inputs: dict[str, Any], **fault: Any) -> str:
    """A run that waits for a person; its id."""
    standin.faults({"fault": "paused", **fault})
    asked = await handler.run(NotedJob(connection(standin.url, key), inputs))
    assert isinstance(asked, NeedsInput)
    assert asked.reference is not None
    return asked.reference


async def withdraw(
    standin: Standin, run_id: str | None, handler: App | None = None, key: str = "app-demo-leads", **more: Any
) -> Withdrawn:
    sent = operation(run_id, seconds_ago=more.pop("seconds_ago", 60.0))
    http = more.pop("http", None) or WatchedHttp()
    return await (handler or Workflow(PACE)).withdraw(connection(standin.url, key), sent, more, http)


def truth(standin: Standin) -> dict[str, Any]:
    [run] = standin.seen()["runs"]
    return dict(run)


def called(standin: Standin, part: str) -> list[dict[str, Any]]:
    return [entry for entry in standin.seen()["requests"] if part in entry["path"]]


@BOTH
async def test_a_run_that_waits_for_a_person_is_stopped(
    standin: Standin, handler: App, key: str, inputs: dict[str, Any]
) -> None:
    run_id = await wait_with_form(standin, handler, key, inputs)
    said = await withdraw(standin, run_id, handler, key)
    assert said == Withdrawn(f"The run {run_id} was stopped in Dify.", over=True)
    assert truth(standin)["status"] == "stopped"
    [stop] = called(standin, "/stop")
    assert stop["path"].startswith("/v1/workflows/tasks" if isinstance(handler, Workflow) else "/v1/chat-messages")
    assert stop["body"] == {"user": "board:1:1"}


async def test_a_stop_that_lies_is_told_as_what_dify_shows(standin: Standin) -> None:
    """B025: the stop call answers success, and the run still waits."""
    run_id = await wait_with_form(standin, Workflow(PACE), "app-demo-leads", {"text": "200 seats"}, stoppable=False)
    said = await withdraw(standin, run_id)
    assert said.message.startswith(f"Dify was asked to stop the run {run_id} and said yes, yet it still waits")
    assert "which expires at 20" in said.message
    assert (said.over, said.again) == (False, None)
    assert truth(standin)["status"] == "paused"


@BOTH
async def test_the_forms_own_no_is_answered_where_the_type_names_it(
    standin: Standin, handler: App, key: str, inputs: dict[str, Any]
) -> None:
    run_id = await wait_with_form(standin, handler, key, inputs, stoppable=False)
    said = await withdraw(standin, run_id, handler, key, cancel_action="reject")
    assert said.message == f"The form of the run {run_id} was answered with “reject”; it is now succeeded."
    assert not said.over
    [given] = called(standin, "/form/human_input/")
    assert given["body"] == {"inputs": {"remark": "-"}, "action": "reject", "user": "board:1:1"}
    assert called(standin, "/stop") == []


async def test_an_action_that_the_form_lacks_is_not_answered_but_the_run_stopped(standin: Standin) -> None:
    run_id = await wait_with_form(standin, Workflow(PACE), "app-demo-leads", {"text": "200 seats"})
    said = await withdraw(standin, run_id, cancel_action="burn")
    assert said.over
    assert called(standin, "/form/human_input/") == []


async def test_a_run_that_works_is_stopped(standin: Standin) -> None:
    run_id = await start_and_die(standin, {"fault": "slow", "seconds": 30})
    assert (await withdraw(standin, run_id)).message == f"The run {run_id} was stopped in Dify."
    assert truth(standin)["status"] == "stopped"


async def test_a_run_that_goes_on_all_the_same_is_said_to_go_on(standin: Standin) -> None:
    run_id = await start_and_die(standin, {"fault": "slow", "seconds": 30, "stoppable": False})
    said = await withdraw(standin, run_id)
    assert said.message.endswith("said yes, yet it is running. What it brings is not used.")
    assert not said.over


async def test_a_run_that_had_ended_is_left_alone(standin: Standin) -> None:
    job = standin.job()
    await Workflow(PACE).run(job)
    said = await withdraw(standin, job.references[-1])
    assert "had ended in Dify (succeeded)" in said.message
    assert not said.over  # its result may still be taken over by a task that is put back
    assert called(standin, "/stop") == []


async def test_a_run_whose_id_was_lost_is_found_by_its_user_and_stopped(standin: Standin) -> None:
    await start_and_die(standin, {"fault": "slow", "seconds": 30})
    said = await withdraw(standin, None)
    assert said.over
    assert truth(standin)["status"] == "stopped"


async def test_where_the_log_shows_no_run_the_grace_time_is_waited_for(standin: Standin) -> None:
    early = await withdraw(standin, None, seconds_ago=0.0)
    assert early.again is not None
    assert 0 < early.again <= 0.5
    late = await withdraw(standin, None)
    assert (late.over, late.again) == (True, None)


async def test_an_old_dify_that_shows_no_events(standin: Standin) -> None:
    run_id = await wait_with_form(standin, Workflow(PACE), "app-demo-leads", {"text": "200 seats"})
    standin.faults({"fault": "http", "on": "events", "http_status": 404, "code": "not_found"})
    said = await withdraw(standin, run_id)
    assert said.message.startswith(f"Dify does not show how to stop the run {run_id}")
    assert (said.over, said.again) == (False, None)


@pytest.mark.parametrize(("handler", "key"), [(Chat(PACE), "app-demo-chat"), (Completion(PACE), "app-demo-text")])
async def test_answers_that_live_in_the_api_process(standin: Standin, handler: App, key: str) -> None:
    said = await withdraw(standin, "m-1", handler, key)
    assert said.message.startswith("Dify cannot be told to stop")
    assert called(standin, "/stop") == []


async def test_a_chatflow_whose_id_was_lost_is_not_looked_for_in_a_log_that_lists_no_chatflows(
    standin: Standin,
) -> None:
    said = await withdraw(standin, None, Chat(PACE), "app-demo-chatflow")
    assert (said.over, said.again) == (False, None)
    assert "before Dify named the run" in said.message


async def test_a_broken_server_is_asked_again_and_a_refused_key_is_not(standin: Standin) -> None:
    standin.faults({"fault": "http", "on": "detail", "http_status": 502, "body": "<html>no</html>"})
    assert (await withdraw(standin, "r-1")).again is not None
    refused = await withdraw(standin, "r-1", key="app-wrong-0123456789")
    assert refused.again is None
    assert "Dify refused the key" in refused.message
    assert "0123456789" not in refused.message


async def test_who_cannot_be_reached_is_the_boards_to_ask_again(standin: Standin) -> None:
    def away(method: str, path: str) -> None:
        raise NotSent("nobody listens")

    with pytest.raises(NotSent):
        await withdraw(standin, "r-1", http=WatchedHttp(away))


async def test_a_connection_without_a_key(standin: Standin) -> None:
    bare = replace(connection(standin.url), secrets={})
    said = await Workflow(PACE).withdraw(bare, operation("r-1"), {}, WatchedHttp())
    assert "has no usable key" in said.message


async def test_a_form_with_a_file_field_is_not_answered_for_anybody(
    standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every field must be given, and nobody has given a file."""
    from integrations.dify import call_off

    shown = {
        "fields": [{"name": "scan", "kind": "file", "options": [], "default": None}],
        "actions": [{"id": "reject"}],
    }
    monkeypatch.setattr(call_off, "board_form", lambda _: shown | {"expires_at": None})
    run_id = await wait_with_form(standin, Workflow(PACE), "app-demo-leads", {"text": "200 seats"})
    async with asyncio.timeout(15):
        said = await withdraw(standin, run_id, cancel_action="reject")
    assert said.over
    assert called(standin, "/form/human_input/") == []


@pytest.mark.parametrize("given", ["", 3, ["reject"]])
def test_a_cancel_action_that_is_no_text_is_refused_with_the_type(given: Any) -> None:
    assert [path for path, _ in Workflow().check({"cancel_action": given})] == ["cancel_action"]
