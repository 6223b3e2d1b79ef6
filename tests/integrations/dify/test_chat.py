"""One attempt of `dify.chat` and `dify.completion`, against the stand-in over a real socket."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from board.ports import CANCELLED, Cause, ErrorClass, Failure, SentOperation, Success, UnknownOutcome
from board.ports import NotStarted as Nothing
from integrations.dify.chat import Chat, Completion
from integrations.dify.follow import Pace
from tests.integrations.dify.conftest import Standin
from tests.integrations.dify.doubles import NotedJob, connection
from tests.integrations.dify.test_reconcile import operation

COMPLAINT = "My parcel is late and I am angry."
CHATS = ["app-demo-chat", "app-demo-agent-chat", "app-demo-agent", "app-demo-chatflow"]
LABELLED = {"type": "object", "required": ["label"], "properties": {"label": {"type": "string"}}}
PACE = Pace(first=0.05, cap=0.2)


def job(standin: Standin, key: str = "app-demo-chat", inputs: dict[str, Any] | None = None, **more: Any) -> NotedJob:
    grace = more.pop("grace", 0.5)
    return NotedJob(connection(standin.url, key, grace=grace), inputs or {"query": COMPLAINT}, **more)


async def say(it: NotedJob) -> Any:
    return await Chat(PACE).run(it)


def bodies(standin: Standin, call: str = "/chat-messages") -> list[dict[str, Any]]:
    return [entry["body"] for entry in standin.seen()["requests"] if entry["path"].endswith(call)]


@pytest.mark.parametrize("key", CHATS)
async def test_an_answer_streams_is_kept_and_its_json_is_the_result(standin: Standin, key: str) -> None:
    it = job(standin, key, user="board:7:3", output_schema=LABELLED)
    outcome = await say(it)
    assert isinstance(outcome, Success)
    assert outcome.result["label"]
    assert outcome.ask is None
    assert "```json" in "".join(it.texts) == outcome.raw_text
    assert outcome.tokens is not None
    assert outcome.cost is not None
    assert outcome.cost.endswith(" USD")
    [started] = standin.seen()["runs"]
    assert it.references[0] in (started["id"] if key.endswith("flow") else outcome.reference, outcome.reference)
    [body] = bodies(standin)
    assert body == {
        "inputs": {},
        "query": COMPLAINT,
        "user": "board:7:3",
        "response_mode": "streaming",
        "auto_generate_name": False,
    }


async def test_without_a_schema_the_answer_is_the_result_and_the_talk_can_go_on(standin: Standin) -> None:
    first = await say(job(standin, inputs={"query": COMPLAINT, "user": "customer-7"}))
    assert isinstance(first, Success)
    assert set(first.result) == {"answer", "conversation_id", "message_id"}
    again = {"query": "And now?", "user": "customer-7", "conversation_id": first.result["conversation_id"]}
    second = await say(job(standin, inputs=again))
    assert isinstance(second, Success)
    assert second.result["conversation_id"] == first.result["conversation_id"]
    assert second.result["message_id"] != first.result["message_id"]
    assert [body["user"] for body in bodies(standin)] == ["customer-7", "customer-7"]


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"question": "?"}, "no field “question”"),
        ({"query": " "}, "needs `query`"),
        ({"query": "x", "conversation_id": "c-1"}, "give `user` too"),
        ({"query": "x", "user": "u" * 256}, "255"),
        ({"query": "x", "files": [{"url": "ftp://example.org/a.png"}]}, "http or https"),
    ],
)
async def test_what_cannot_be_said_is_refused_before_anything_is_sent(
    standin: Standin, inputs: dict[str, Any], said: str
) -> None:
    outcome = await say(job(standin, inputs=inputs))
    assert isinstance(outcome, Failure)
    assert (outcome.error_class, outcome.cause) == (ErrorClass.PERMANENT, Cause.PRECONDITION)
    assert said in outcome.message
    assert bodies(standin) == []


@pytest.mark.parametrize(
    ("handler", "key", "said"),
    [
        (Chat, "app-demo-leads", "opens a workflow, which dify.chat cannot use: write `use: dify.workflow`"),
        (Completion, "app-demo-chatflow", "write `use: dify.chat`"),
        (Chat, "app-demo-text", "write `use: dify.completion`"),
    ],
)
async def test_a_key_of_another_kind_of_app_is_told_before_anything_is_sent(
    standin: Standin, handler: type[Chat], key: str, said: str
) -> None:
    it = job(standin, key, {"query": "x", "text": "x"})
    outcome = await handler(PACE).run(it)
    assert isinstance(outcome, Failure)
    assert said in outcome.message
    assert it.sent == []


@pytest.mark.parametrize(
    ("fault", "ask"),
    [("empty", "empty_output"), ("refusal", "invalid_output"), ("partial", "partial_result"), ("think", None)],
)
async def test_the_ends_of_a_chatflow(standin: Standin, fault: str, ask: str | None) -> None:
    standin.faults(fault)
    outcome = await say(job(standin, "app-demo-chatflow", output_schema=LABELLED))
    assert isinstance(outcome, Success)
    assert outcome.ask == ask


@pytest.mark.parametrize("key", CHATS)
async def test_a_failure_inside_is_a_failure(standin: Standin, key: str) -> None:
    standin.faults("failed")
    outcome = await say(job(standin, key))
    assert isinstance(outcome, Failure)
    assert outcome.error_class is ErrorClass.UNKNOWN
    assert "did not answer" in outcome.message
    assert not outcome.open_operation


@pytest.mark.parametrize("fault", ["no_terminal", "drop_after_id", "html_504", "drop_before_id"])
async def test_a_chatflow_whose_line_broke_is_found_again(standin: Standin, fault: str) -> None:
    """B013, B017: the run goes on by itself and is asked for, never started twice."""
    standin.faults(fault)
    outcome = await say(job(standin, "app-demo-chatflow", output_schema=LABELLED, grace=3))
    assert isinstance(outcome, Success)
    assert outcome.result["label"]
    assert len(bodies(standin)) == 1


async def test_a_chat_that_was_saved_is_taken_from_the_history(standin: Standin) -> None:
    standin.faults({"fault": "no_terminal", "keeps_answer": True})
    outcome = await say(job(standin))
    assert isinstance(outcome, Success)
    assert outcome.result["answer"].startswith("Here is the result")
    assert outcome.result["conversation_id"]
    assert len(bodies(standin)) == 1


async def test_a_chat_whose_answer_was_lost_is_unknown_after_its_time(standin: Standin) -> None:
    """It runs in Dify's API process, which saves the answer only while somebody listens."""
    standin.faults("drop_after_id")
    it = job(standin, timeout=0.6)
    outcome = await say(it)
    assert isinstance(outcome, Failure)
    assert outcome.open_operation
    later = await Chat(PACE).reconcile(job(standin, timeout=1), operation(it.references[0], seconds_ago=100))
    assert isinstance(later, UnknownOutcome)
    assert "without an answer" in later.message


async def test_nothing_was_said_where_the_history_shows_nothing(standin: Standin) -> None:
    found = await Chat(PACE).reconcile(job(standin), operation(None, seconds_ago=100, user="board:1:77"))
    assert isinstance(found, Nothing)


async def test_in_a_talk_that_goes_on_the_message_is_told_by_its_words(standin: Standin) -> None:
    first = await say(job(standin, inputs={"query": COMPLAINT, "user": "customer-7"}))
    again = {"query": "And now?", "user": "customer-7", "conversation_id": first.result["conversation_id"]}
    nothing = await Chat(PACE).reconcile(job(standin, inputs=again), operation(None, seconds_ago=100))
    assert isinstance(nothing, Nothing)  # the older message is not taken for it
    second = await say(job(standin, inputs=again))
    found = await Chat(PACE).reconcile(job(standin, inputs=again), operation(None, seconds_ago=1))
    assert isinstance(found, Success)
    assert found.result["message_id"] == second.result["message_id"]


async def test_a_text_generator(standin: Standin) -> None:
    it = job(standin, "app-demo-text", {"text": "An article about tea."}, output_schema={"type": "object"})
    outcome = await Completion(PACE).run(it)
    assert isinstance(outcome, Success)
    assert "".join(it.texts)
    [body] = bodies(standin, "/completion-messages")
    assert body == {"inputs": {"text": "An article about tea."}, "user": "board:1:1", "response_mode": "streaming"}


async def test_what_became_of_a_lost_completion_nobody_can_tell(standin: Standin) -> None:
    standin.faults("drop_after_id")
    it = job(standin, "app-demo-text", {"text": "An article about tea."})
    outcome = await Completion(PACE).run(it)
    assert isinstance(outcome, UnknownOutcome)
    sent = SentOperation("k", "dify.completion", "x", "board:1:1", None, operation(None).sent_at)
    assert isinstance(await Completion(PACE).reconcile(it, sent), UnknownOutcome)


@pytest.mark.parametrize("key", ["app-demo-chat", "app-demo-chatflow"])
async def test_a_cancelled_task_stops_its_answer_in_dify(standin: Standin, key: str) -> None:
    """B025: with the starter's own user, which Dify compares."""
    standin.faults({"fault": "slow", "seconds": 30})
    it = job(standin, key)
    task = asyncio.create_task(say(it))
    async with asyncio.timeout(15):
        await it.started.wait()
        task.cancel(CANCELLED)
        with pytest.raises(asyncio.CancelledError):
            await task
    [stop] = [entry for entry in standin.seen()["requests"] if entry["path"].endswith("/stop")]
    assert "/chat-messages/" in stop["path"]
    assert stop["body"] == {"user": "board:1:1"}


async def test_a_worker_that_goes_down_stops_nothing_in_dify(standin: Standin) -> None:
    standin.faults({"fault": "slow", "seconds": 30})
    it = job(standin, "app-demo-chatflow")
    task = asyncio.create_task(say(it))
    async with asyncio.timeout(15):
        await it.started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not [entry for entry in standin.seen()["requests"] if entry["path"].endswith("/stop")]


@pytest.mark.parametrize("key", ["app-demo-chat", "app-demo-chatflow"])
async def test_an_answer_in_one_piece(standin: Standin, key: str) -> None:
    it = job(standin, key, wait="blocking", output_schema=LABELLED)
    outcome = await say(it)
    assert isinstance(outcome, Success)
    assert outcome.result["label"]
    assert outcome.tokens
    assert bodies(standin)[0]["response_mode"] == "blocking"


@pytest.mark.parametrize("key", ["app-demo-agent-chat", "app-demo-agent"])
async def test_an_agent_only_streams(standin: Standin, key: str) -> None:
    outcome = await say(job(standin, key, wait="blocking"))
    assert isinstance(outcome, Failure)
    assert "only streams" in outcome.message
    assert bodies(standin) == []
