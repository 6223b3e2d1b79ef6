"""One answer to the call that starts a run: what is read from it, however odd or cut it is."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from board.ports import ErrorClass, Failure, Lost, Success
from integrations.dify.client import Run
from integrations.dify.errors import ApiError
from integrations.dify.follow import Pace
from integrations.dify.jsontext import MAX_RAW_TEXT
from integrations.dify.live import MAX_STEP_ERRORS, CutShort, LiveRun
from integrations.dify.sse import MAX_EVENT_BYTES
from integrations.dify.workflow import Workflow
from tests.integrations.dify import cases
from tests.integrations.dify.conftest import RUN_ID, Standin
from tests.integrations.dify.doubles import Canned, CannedHttp, NotedJob

JSON = {"content-type": "application/json; charset=utf-8"}


def frames(*messages: Any) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(message).encode() for message in messages)


def finished(**data: Any) -> dict[str, Any]:
    return {"event": "workflow_finished", "workflow_run_id": RUN_ID, "data": {"id": RUN_ID, **data}}


async def watch(answer: Canned) -> tuple[Run, LiveRun, NotedJob]:
    job = NotedJob(None, {})
    live = LiveRun(job)
    return await live.watch(answer), live, job


@pytest.mark.parametrize("name", ["d_ping_crlf_multiline.sse", "d_partial_succeeded.sse", "d_empty_outputs.sse"])
async def test_a_stream_that_is_cut_anywhere_is_never_taken_for_a_whole_one(name: str) -> None:
    """B017: only the whole closing event ends a run."""
    stream = cases.sse(name)
    whole, _, _ = await watch(Canned([stream]))
    assert whole.status in ("succeeded", "partial-succeeded")
    last = stream.rindex(b"}") + 1  # the end of the closing event's JSON
    for length in range(0, len(stream), 7):
        if length < last:
            with pytest.raises(CutShort):
                await watch(Canned([stream[:length]]))
        else:
            assert (await watch(Canned([stream[:length]])))[0] == whole
    with pytest.raises(CutShort):
        await watch(Canned([stream[: last - 1]]))
    assert (await watch(Canned([stream[:last]])))[0] == whole


async def test_the_id_is_known_when_the_connection_breaks() -> None:
    job = NotedJob(None, {})
    live = LiveRun(job)
    with pytest.raises(Lost):
        await live.watch(Canned([frames({"event": "workflow_started", "workflow_run_id": RUN_ID})], broken=True))
    assert live.run_id == RUN_ID
    assert job.references == [RUN_ID]


@given(
    st.lists(st.binary(max_size=60) | st.sampled_from([b"data: ", b"\n\n", b'{"event":', b'"error"}', b"[]", b"null"]))
)
def test_no_bytes_break_the_reading(pieces: list[bytes]) -> None:
    with pytest.raises((CutShort, ApiError)):
        asyncio.run(watch(Canned(pieces)))


@pytest.mark.parametrize(
    "message",
    [
        5,
        [],
        None,
        {"event": ["error"]},
        {"event": "node_finished", "data": []},
        {"event": "node_finished", "data": {"status": 5, "error": {}}},
        {"event": "node_started", "data": {"title": None}},
        {"event": "text_chunk", "data": {"text": 5}},
        {"event": "workflow_started", "workflow_run_id": 7},
        {"event": "workflow_started", "workflow_run_id": "x" * 5000},
        {"event": "workflow_started", "workflow_run_id": "a\nb"},
    ],
)
async def test_events_of_an_unknown_form_mean_nothing(message: Any) -> None:
    run, live, job = await watch(Canned([frames(message, finished(status="succeeded", outputs={"a": 1}))]))
    assert (run.outputs, live.text, live.step_errors, job.references) == ({"a": 1}, "", [], [RUN_ID])


@pytest.mark.parametrize("data", [{}, {"status": None}, {"status": "running"}, {"status": "finished"}])
async def test_a_closing_event_without_an_end_is_no_success(data: dict[str, Any]) -> None:
    with pytest.raises(CutShort):
        await watch(Canned([frames(finished(outputs={"a": 1}, **data))]))


async def test_broken_json_and_deep_json_are_passed_over() -> None:
    deep = b'data: {"event": "x", "data": ' + b"[" * 50_000 + b"]" * 50_000 + b"}\n\n"
    run, _, _ = await watch(Canned([b"data: {\n\n", deep, frames(finished(status="succeeded", outputs={}))]))
    assert run.status == "succeeded"


async def test_text_may_be_replaced_and_steps_are_named_in_short() -> None:
    _, live, job = await watch(
        Canned(
            [
                frames(
                    {"event": "text_chunk", "data": {"text": "secret \ud800"}},
                    {"event": "text_replace", "data": {"text": "moderated"}},
                    {"event": "node_started", "data": {"title": "a\nb" * 300}},
                    {"event": "node_finished", "data": {"status": "exception", "title": "T\x00", "error": "<html>x"}},
                    {
                        "event": "node_finished",
                        "data": {"status": "failed", "node_id": "n", "error": "sk-12345678"},
                    },
                    finished(status="succeeded", outputs={"a": 1}),
                )
            ]
        )
    )
    assert live.text == "moderated"
    assert job.texts == ["secret \ufffd"]
    [title] = job.steps
    assert title is not None
    assert len(title) == 200
    assert live.step_errors == ["T\ufffd: failed", "n: [key]"]


async def test_a_stream_without_measure_is_kept_in_part() -> None:
    chunk = frames({"event": "text_chunk", "data": {"text": "x" * 100_000}})
    failed = frames({"event": "node_finished", "data": {"status": "failed", "title": "T", "error": "e"}})
    end = frames(finished(status="succeeded", outputs={"a": 1}))
    _, live, job = await watch(Canned([chunk] * 20 + [failed] * 20 + [end]))
    assert MAX_RAW_TEXT <= len(live.text) <= MAX_RAW_TEXT + 200_000
    assert len(job.texts) == 20
    assert len(live.step_errors) == MAX_STEP_ERRORS


async def test_a_page_under_200_is_not_an_answer() -> None:
    with pytest.raises(ApiError) as caught:
        await watch(Canned([b"<html>log in</html>"], headers={"content-type": "text/html"}))
    assert caught.value.unsure


@pytest.mark.parametrize(
    ("status", "data"), [(200, {"status": "succeeded", "outputs": {"a": 1}}), (200, {"status": "partial-succeeded"})]
)
async def test_an_answer_in_one_piece_is_taken_too(status: int, data: dict[str, Any]) -> None:
    body = json.dumps({"task_id": "t", "workflow_run_id": RUN_ID, "data": data}).encode()
    run, _, job = await watch(Canned([body], status, JSON))
    assert (run.id, run.status, job.references) == (RUN_ID, data["status"], [RUN_ID])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        json.dumps({"workflow_run_id": RUN_ID, "data": {"status": "running"}}).encode(),
        json.dumps({"event": "workflow_maintenance_paused", "workflow_run_id": RUN_ID}).encode(),
    ],
)
async def test_an_answer_in_one_piece_that_tells_no_end_is_asked_about(body: bytes) -> None:
    with pytest.raises(CutShort):
        await watch(Canned([body], 202, JSON))


async def test_an_error_in_one_piece_under_200() -> None:
    with pytest.raises(ApiError) as caught:
        await watch(Canned([b'{"code": "unauthorized", "message": "no", "status": 401}'], 200, JSON))
    assert (caught.value.status, caught.value.code) == (401, "unauthorized")


async def test_a_page_under_200_leads_to_the_run_log(standin: Standin) -> None:
    page = Canned([b"<html>log in</html>"], headers={"content-type": "text/html"})
    job = standin.job(grace=0.1, http=CannedHttp(answer=page))
    outcome = await Workflow(Pace(0.05, 0.2)).run(job)
    assert isinstance(outcome, Failure)
    assert outcome.error_class is ErrorClass.PERMANENT
    assert "`url`" in outcome.message
    assert any(path.endswith("/workflows/logs") for _, path in job.http.calls)


async def test_an_event_over_the_limit_leads_to_the_runs_detail(standin: Standin) -> None:
    first = standin.job()
    done = await Workflow().run(first)
    assert isinstance(done, Success)
    started = frames({"event": "workflow_started", "workflow_run_id": done.reference})
    endless = Canned([started, *[b"data: " + b"x" * 1_000_000] * (MAX_EVENT_BYTES // 1_000_000 + 1)])
    outcome = await Workflow(Pace(0.05, 0.2)).run(standin.job(http=CannedHttp(answer=endless)))
    assert isinstance(outcome, Success)
    assert outcome.reference == done.reference
    assert outcome.result == done.result


@pytest.mark.parametrize("price", ["1e999999", "1e-999999", "NaN", "-1", "9" * 400, [1], "sNaN", "Infinity"])
async def test_a_price_that_is_none_is_not_added_up(price: Any) -> None:
    """Written out, 1e999999 is a million digits, and two of them are more than a decimal number can be."""
    step = {"event": "node_finished", "data": {"execution_metadata": {"total_price": price, "currency": "USD"}}}
    good = {"event": "node_finished", "data": {"execution_metadata": {"total_price": "0.5", "currency": "USD"}}}
    _, live, _ = await watch(Canned([frames(step, good, step, finished(status="succeeded"))]))
    assert live.cost == "0.5 USD"


async def test_a_run_is_paid_in_a_few_currencies(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [
        {"event": "node_finished", "data": {"execution_metadata": {"total_price": "1", "currency": "A" * n}}}
        for n in range(1, 9)
    ]
    _, live, _ = await watch(Canned([frames(*steps, finished(status="succeeded"))]))
    assert live.cost == "1 A + 1 AA + 1 AAA"


@pytest.mark.parametrize("tokens", [10**13, 2**70, -1, True, "12", 1.5, None])
async def test_tokens_that_no_run_can_use_are_not_kept(tokens: Any) -> None:
    """A number that no database takes would else cost the task its result."""
    run, _, _ = await watch(Canned([frames(finished(status="succeeded", total_tokens=tokens))]))
    assert run.total_tokens is None
