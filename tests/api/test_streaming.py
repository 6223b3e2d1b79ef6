"""Callers who follow a task live."""

from __future__ import annotations

import time
from typing import Any

import pytest
from sqlalchemy import Connection, RowMapping

from board.api.streaming import wants_stream
from board.ports import Cause, ErrorClass, Failure, Job, Outcome, Success
from board.tasks.read import by_internal_id
from tests.api.conftest import Api, OpenApi
from tests.api.live import LIVE, PROBE, follow, post, until
from tests.rig.events import statuses, stream
from tests.rig.working import Gate, Probe

# -- what is told -----------------------------------------------------------------------------------------------------


def test_a_task_is_put_in_and_followed_to_its_end(open_api: OpenApi) -> None:
    async def write(job: Job) -> Outcome:
        await job.progress(25, "begun")
        await job.text("Good ")
        await job.text("morning ☀\n")
        return Success(result={"text": "done"})

    api = open_api(Probe(write), work=True)
    api.types(PROBE)
    with post(api, {"type": "probe", "task_id": "T-1"}) as live:
        assert live.answer.status_code == 201
        assert live.answer.headers["x-accel-buffering"] == "no"
        assert live.answer.headers["cache-control"] == "no-store"
        events = list(live)
    kinds = [event.kind for event in events]
    assert statuses(events) == ["pending", "running", "done"]
    assert kinds[:2] == ["status", "status"]
    assert kinds[-2:] == ["status", "end"], "what was said stands before the end"
    assert [event.id for event in events if event.kind == "status"] == ["1", "2", "3"]
    assert events[0].data == {
        "status": "pending",
        "from": None,
        "phase": "work",
        "kind": "created",
        "attempt": None,
        "at": events[0].data["at"],
    }
    told = [event.data for event in events if event.kind == "progress"]
    assert told == [{"attempt": 1, "percent": 25, "message": "begun"}]
    texts = [event.data for event in events if event.kind == "text"]
    assert "".join(text["text"] for text in texts) == "Good morning ☀\n"
    assert [text["offset"] for text in texts] == [sum(len(it["text"]) for it in texts[:n]) for n in range(len(texts))]
    assert events[-1].data == api.task()


def test_following_does_not_end_where_a_person_is_asked_but_putting_in_does(open_api: OpenApi) -> None:
    api = open_api(work=True)
    with post(api, {"type": "ask", "task_id": "A-1"}) as live:
        events = list(live)
    assert events[-1].kind == "end"
    assert events[-1].data["status"] == "needs_review"
    with follow(api, "A-1") as live:
        assert next(live).data["status"] == "needs_review"
        assert api.post("/tasks/A-1/approve").status_code == 200
        events = live.until("end")
    assert statuses(events)[-1] == "done"
    assert events[-1].data["decision"]["verdict"] == "approve"


def test_what_has_ended_is_told_at_once_and_the_stream_closes(api: Api) -> None:
    api.submit("T-1")
    api.post("/tasks/T-1/cancel")
    with follow(api, "T-1") as live:
        events = list(live)
    assert [event.kind for event in events] == ["status", "end"]
    assert events[0].data["status"] == events[1].data["status"] == "cancelled"
    assert (events[0].id, events[1].id) == ("2", "2-end")


def test_who_comes_back_gets_what_he_has_missed_and_no_more(api: Api) -> None:
    api.submit("T-1")
    api.post("/tasks/T-1/cancel")
    api.post("/tasks/T-1/requeue")
    api.post("/tasks/T-1/cancel")
    with follow(api, "T-1", **{"Last-Event-ID": "1"}) as live:
        events = list(live)
    assert statuses(events) == ["cancelled", "pending", "cancelled"]
    assert [event.id for event in events] == ["2", "3", "4", "4-end"]
    with follow(api, "T-1", **{"Last-Event-ID": "4"}) as live:
        assert [event.kind for event in live] == ["end"], "he may not have seen the end"
    over = api.client.get("/tasks/T-1/stream", headers={"Last-Event-ID": "4-end"})
    assert (over.status_code, over.content) == (204, b""), "a browser then does not come back any more"
    api.post("/tasks/T-1/requeue")
    with follow(api, "T-1", **{"Last-Event-ID": "4-end"}) as live:
        assert next(live).data["status"] == "pending", "it goes on"


@pytest.mark.parametrize("given", ["", "x", "-1", "99999999999999999999", "5", "1;2", "0x1"])
def test_a_last_event_that_cannot_be_is_none(one_api: Api, given: str) -> None:
    task = one_api.submit(f"L-{len(given)}-{given[:1] or 'e'}".replace("-x", "-y"))
    one_api.post(f"/tasks/{task['task_id']}/cancel")
    with follow(one_api, task["task_id"], **{"Last-Event-ID": given}) as live:
        assert statuses(list(live)) == ["cancelled"]


def test_a_retry_is_seen_with_the_text_of_each_attempt(open_api: OpenApi) -> None:
    async def second_time(job: Job) -> Outcome:
        await job.text(f"attempt {job.attempt}")
        if job.attempt == 1:
            return Failure(ErrorClass.TRANSIENT, Cause.NETWORK, "The line is bad.")
        return Success(result={})

    api = open_api(Probe(second_time), work=True)
    api.types(PROBE)
    with post(api, {"type": "probe", "task_id": "T-1"}) as live:
        events = list(live)
    assert statuses(events) == ["pending", "running", "retrying", "running", "done"]
    last = [event.data for event in events if event.kind == "text"][-1]
    assert (last["attempt"], last["offset"], last["text"]) == (2, 0, "attempt 2")


def test_what_is_said_while_somebody_looks_is_told_before_the_end(
    open_api: OpenApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work says it and ends between the signal that woke the caller and his look at the task."""
    gate = Gate()

    async def write(job: Job) -> Outcome:
        await gate.passed()
        await job.text("all of it")
        return Success(result={})

    api = open_api(Probe(write), work=True)
    api.types(PROBE)

    def late(connection: Connection, task: int) -> RowMapping:
        if api.task()["status"] == "running":
            gate.open()
            until(lambda: api.task()["status"] == "done")
        return by_internal_id(connection, task)

    monkeypatch.setattr("board.following.by_internal_id", late)
    with post(api, {"type": "probe", "task_id": "T-1"}) as live:
        events = list(live)
    assert statuses(events)[-2:] == ["running", "done"]
    assert [event.data["text"] for event in events if event.kind == "text"] == ["all of it"]


def test_who_comes_late_gets_what_was_written_so_far(open_api: OpenApi) -> None:
    begun, gate = Gate(), Gate()

    async def write(job: Job) -> Outcome:
        await job.text("The first half, ")
        await job.progress(50)
        begun.open()
        await gate.passed()
        await job.text("the second half.")
        return Success(result={})

    api = open_api(Probe(write), work=True)
    api.types(PROBE)
    api.submit("T-1", "probe")
    begun.wait()
    with follow(api, "T-1") as live:
        first = [next(live) for _ in range(3)]
        assert [event.kind for event in first] == ["status", "progress", "text"]
        assert first[0].data["status"] == "running"
        assert first[2].data == {"attempt": 1, "offset": 0, "next": 16, "text": "The first half, "}
        gate.open()
        rest = live.until("end")
    assert rest[0].data == {"attempt": 1, "offset": 16, "next": 32, "text": "the second half."}
    with follow(api, "T-1") as live:
        assert [event.kind for event in live] == ["status", "end"], "the result has it all"


def test_what_an_outside_worker_tells_is_heard(api: Api) -> None:
    api.types({"name": "outside", "handler": {"use": "outside", "side_effects": False}})
    api.submit("T-1", "outside")
    [claim] = api.post("/claims", json={"worker": "w"}).json()["data"]
    address = f"/claims/{claim['claim_id']}"
    with follow(api, "T-1") as live:
        assert next(live).data["status"] == "running"
        api.post(f"{address}/progress", json={"percent": 40, "message": "page 2"})
        assert next(live).data == {"attempt": 1, "percent": 40, "message": "page 2"}
        api.post(f"{address}/progress", json={"text": "Dear "})
        assert next(live).data == {"attempt": 1, "offset": 0, "next": 5, "text": "Dear "}
        api.post(f"{address}/progress", json={"text": "Li"})
        assert next(live).data == {"attempt": 1, "offset": 5, "next": 7, "text": "Li"}
        api.post(f"{address}/complete", json={"result": {}})
        assert live.until("end")[-1].data["status"] == "done"


def test_the_last_word_of_an_outside_worker_is_kept_for_who_comes_late(open_api: OpenApi) -> None:
    api = open_api()
    api.types({"name": "outside", "handler": {"use": "outside", "side_effects": False}})
    api.submit("T-1", "outside")
    [claim] = api.post("/claims", json={"worker": "w"}).json()["data"]
    api.post(f"/claims/{claim['claim_id']}/progress", json={"percent": 40, "message": "page 2"})
    later = open_api()  # a process that has heard nothing of it
    with follow(later, "T-1") as live:
        assert [next(live).kind for _ in range(2)] == ["status", "progress"]


def test_hostile_text_stays_data(open_api: OpenApi) -> None:
    """A piece may hold line ends, NUL and halves of characters: no event is broken or forged by it."""
    evil = 'x\n\nevent: end\ndata: {"status": "done"}\n\n\r\r\0\ud800</script>'

    async def write(job: Job) -> Outcome:
        await job.text(evil)
        await job.progress(float("nan"), evil)
        await job.progress(1e9, "m" * 5000)
        return Success(result={})

    api = open_api(Probe(write), work=True)
    api.types(PROBE)
    with post(api, {"type": "probe", "task_id": "T-1"}) as live:
        events = list(live)
    [text] = [event.data["text"] for event in events if event.kind == "text"]
    assert text == evil.replace("\0", "\ufffd").replace("\ud800", "\ufffd")
    [told] = [event.data for event in events if event.kind == "progress"][-1:]
    assert (told["percent"], len(told["message"])) == (100, 1000)
    assert [event.kind for event in events].count("end") == 1


# -- putting in -------------------------------------------------------------------------------------------------------


def test_a_duplicate_follows_the_task_that_exists(open_api: OpenApi) -> None:
    api = open_api(work=True)
    body = {"type": "trial", "task_id": "T-1", "payload": {"n": 1}}
    with post(api, body) as live:
        live.until("end")
    with post(api, body | {"payload": {"n": 2}}) as live:
        assert live.answer.status_code == 200
        events = list(live)
    assert [event.kind for event in events] == ["status", "end"]
    assert events[-1].data["duplicate"] is True
    assert events[-1].data["payload_differs"] is True
    assert events[-1].data["result"] == {"n": 1}


def test_a_duplicate_of_somebody_elses_task_shows_its_status_only(api: Api) -> None:
    api.submit("T-1", payload={"secret": 1})
    other = api.as_key("submit", name="other")
    with post(other, {"type": "trial", "task_id": "T-1"}) as live:
        events = list(live)
    assert [event.data for event in events] == [
        {"status": "pending"},
        {"task_id": "T-1", "status": "pending", "duplicate": True, "payload_differs": True},
    ]


@pytest.mark.parametrize(
    ("body", "status"),
    [({"type": "nobody"}, 422), ({"type": "trial", "task_id": "a/b"}, 422), ({"type": "trial", "extra": 1}, 422)],
)
def test_what_is_refused_is_refused_in_json(one_api: Api, body: dict[str, Any], status: int) -> None:
    assert one_api.post("/tasks", json=body, headers=LIVE).status_code == status


def test_who_may_not_is_told_so_in_json(api: Api) -> None:
    api.submit("T-1")
    reader, other = api.as_key("read", name="r"), api.as_key("submit", name="other")
    assert reader.post("/tasks", json={"type": "trial", "task_id": "T-2"}, headers=LIVE).status_code == 403
    assert other.get("/tasks/T-1/stream").status_code == 404
    assert api.get("/tasks/no/stream").status_code == 404
    assert api.get("/tasks/T-1/stream?wait=1").status_code == 422
    with follow(reader, "T-1") as live:
        assert next(live).data["status"] == "pending"


@pytest.mark.parametrize(
    ("accept", "live"),
    [
        ("text/event-stream", True),
        ("TEXT/Event-Stream; charset=utf-8", True),
        ("text/event-stream, application/json", True),
        ("text/event-stream, */*", True),
        ("*/*, text/event-stream", True),
        ("application/json, text/event-stream", False),
        ("application/json;q=0.5, text/event-stream", True),
        ("text/event-stream;q=0.5, application/json", False),
        ("text/event-stream;q=0", False),
        ("text/event-stream;q=x, */*", False),
        ("*/*", False),
        ("application/*", False),
        ("text/html", False),
        ("", False),
        (None, False),
    ],
)
def test_which_answer_is_preferred(accept: str | None, live: bool) -> None:
    assert wants_stream(accept) is live


def test_a_wait_bounds_the_stream(api: Api) -> None:
    begin = time.monotonic()
    with stream(api.client, "POST", "/tasks?wait=0.5", json={"type": "trial", "task_id": "T-1"}, headers=LIVE) as live:
        events = list(live)
    assert [event.kind for event in events] == ["status"], "it has no end yet"
    assert 0.5 <= time.monotonic() - begin < 10
