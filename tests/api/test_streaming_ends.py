"""How a stream ends: the caller leaves, reads slowly or may no longer read, the server stops, a message is lost."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from itertools import pairwise
from urllib.parse import urlsplit

import httpx2
import pytest

from board.following import last_event, look
from board.ports import Job, Outcome, Success
from tests.api.conftest import Api, OpenApi
from tests.api.live import PROBE, follow, post, until
from tests.rig.events import statuses
from tests.rig.working import Gate, Probe


def test_who_leaves_is_let_go_and_his_task_goes_on(open_api: OpenApi) -> None:
    gate = Gate()

    async def wait(job: Job) -> Outcome:
        await gate.passed()
        return Success(result={})

    api = open_api(Probe(wait), work=True)
    api.types(PROBE)
    callers = api.board.signals.callers
    with post(api, {"type": "probe", "task_id": "T-1"}) as live:
        live.until("status", "running")
        assert len(callers) == 1
    until(lambda: len(callers) == 0)
    with contextlib.suppress(httpx2.ReadTimeout):
        api.client.get("/tasks/T-1?wait=30", timeout=0.3)
    until(lambda: len(callers) == 0)
    with pytest.raises(httpx2.ReadTimeout):
        api.client.post("/tasks?wait=30", json={"type": "probe", "task_id": "T-2"}, timeout=0.3)
    until(lambda: len(callers) == 0)
    gate.open()
    assert api.get("/tasks/T-1?wait=30").json()["status"] == "done"


def test_a_silent_stream_is_kept_open_by_comments(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("board.following.PING_SECONDS", 0.1)
    api.submit("T-1")
    with follow(api, "T-1") as live:
        next(live)
        cancel = threading.Timer(1, lambda: api.post("/tasks/T-1/cancel"))
        cancel.start()
        live.until("end")
        cancel.join()
        assert len(live.comments) >= 3
        assert set(live.comments) == {": ping"}


def test_a_key_that_is_revoked_hears_nothing_more(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("board.following.PING_SECONDS", 0.1)
    api.submit("T-1")
    reader = api.as_key("read", name="gone")
    with follow(reader, "T-1") as live:
        next(live)
        assert api.request("DELETE", "/keys/gone").is_success
        assert list(live) == []
    until(lambda: len(api.board.signals.callers) == 0)


@pytest.mark.alone
def test_a_server_that_stops_closes_its_streams_at_once(api: Api) -> None:
    api.submit("T-1")
    with follow(api, "T-1") as live:
        next(live)
        begin = time.monotonic()
        api.board.stopping.set()
        api.board.signals.callers.ring()
        assert list(live) == []
        assert time.monotonic() - begin < 1


def test_who_reads_slowly_misses_text_but_no_status_and_holds_up_nobody(open_api: OpenApi) -> None:
    begun, piece, pieces = Gate(), "0123456789abcdef" * 512, 4000  # 32 MB: more than all buffers on the way

    async def write(job: Job) -> Outcome:
        await begun.passed()
        for _ in range(pieces):
            await job.text(piece)
            await asyncio.sleep(0)
        return Success(result={})

    api = open_api(Probe(write), work=True)
    api.types(PROBE)
    api.submit("T-1", "probe")
    with follow(api, "T-1") as slow:
        slow.until("status", "running")
        begun.open()
        assert api.get("/tasks/T-1?wait=60").json()["status"] == "done", "it was not held up"
        events = slow.until("end")
    assert statuses(events) == ["done"]
    texts = [event.data for event in events if event.kind == "text"]
    assert sum(len(text["text"]) for text in texts) < pieces * len(piece), "some was left out"
    ends = [(text["offset"], text["offset"] + len(text["text"])) for text in texts]
    gaps = [begin - end for (_, end), (begin, _) in pairwise([*ends, (pieces * len(piece), 0)])]
    assert all(gap >= 0 for gap in gaps), "in order, none twice"
    assert any(gap > 0 for gap in gaps), "and the offsets say so"


def test_two_hundred_wait_and_all_hear_of_it(open_api: OpenApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost one look at the database a second together, and not one each."""
    api = open_api()
    api.submit("T-1")
    callers, looks = api.board.signals.callers, []
    monkeypatch.setattr("board.api.waiting.look", lambda *given: looks.append(1) or look(*given))
    address = urlsplit(api.url)

    async def wait() -> str:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        head = f"GET /api/v1/tasks/T-1?wait=60 HTTP/1.1\r\nHost: {address.netloc}\r\nX-API-Key: {api.key}\r\n\r\n"
        writer.write(head.encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
        body = json.loads(await reader.readexactly(length))
        writer.close()
        return str(body["status"])

    async def all_wait() -> list[str]:
        waiting = [asyncio.create_task(wait()) for _ in range(200)]
        await asyncio.to_thread(until, lambda: len(callers) == 200)
        await asyncio.sleep(2)
        assert not looks, "nobody looks while nothing happens"
        await asyncio.to_thread(lambda: api.post("/tasks/T-1/cancel"))
        return await asyncio.wait_for(asyncio.gather(*waiting), 30)

    assert asyncio.run(all_wait()) == ["cancelled"] * 200
    until(lambda: len(callers) == 0)


def test_an_end_that_nobody_has_told_is_found_by_looking(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a lost message: the signals of this process are cut."""
    monkeypatch.setattr(api.board.signals, "send", lambda _: None)
    api.submit("T-1")
    with follow(api, "T-1") as live:
        next(live)
        api.post("/tasks/T-1/cancel")
        begin = time.monotonic()
        assert live.until("end")[-1].data["status"] == "cancelled"
        assert time.monotonic() - begin < 5


def test_the_numbers_of_events() -> None:
    assert last_event("12") == (12, False)
    assert last_event("12-end") == (12, True)
    assert last_event(None) == last_event("soon") == (None, False)
