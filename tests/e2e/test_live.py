"""What happens in one process is heard in the others: by PostgreSQL, by Valkey, within one process, and by looking."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest

from tests.rig.board import API_KEY, BoardProcess, StartBoard
from tests.rig.board import api as client_of
from tests.rig.events import Event, Stream, statuses, stream
from tests.rig.trial_package import TrialPackage
from tests.rig.valkey import ValkeyServer

TYPES = {
    "types": [
        {"name": "nap", "handler": {"use": "nap"}, "require_id": False},
        {"name": "writer", "handler": {"use": "writer"}, "require_id": False},
    ]
}
POLL = 1.0  # a worker that hears nothing looks so often, in seconds
CANCEL = 2.0  # the longest until a running handler is told to stop
LEAVES = 10.0  # after so long service managers kill
LIVE = {"Accept": "text/event-stream"}


@dataclass
class Running:
    """A board at work. heard: what happens in one process is known in the others at once."""

    api: BoardProcess
    worker: BoardProcess
    heard: bool


def start(board_process: StartBoard, package: TrialPackage, url: str, redis: str = "") -> Running:
    env = {**package.environment, "BOARD_REDIS_URL": redis}
    served = board_process("api", database_url=url, env=env)
    with client_of(served.url) as client:
        assert client.post("/types", json=TYPES).is_success
    worker = board_process("worker", database_url=url, env=env)
    return Running(served, worker, heard=bool(redis) or not url.startswith("sqlite"))


@pytest.fixture(params=["postgresql", "valkey", "sqlite", "up"])
def running(request: pytest.FixtureRequest, board_process: StartBoard, trial_package: TrialPackage) -> Running:
    """API and worker as processes of their own, with each carrier and with none; and both in one process."""
    if request.param == "up":
        both = board_process("up", env=trial_package.environment)
        with client_of(both.url) as client:
            assert client.post("/types", json=TYPES).is_success
        return Running(both, both, heard=True)
    url = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
    redis = request.getfixturevalue("redis_url") if request.param == "valkey" else ""
    return start(board_process, trial_package, url, redis)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.monotonic()
    result = work()
    return time.monotonic() - begin, result


def until(holds: Callable[[], Any], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


@pytest.mark.alone
def test_callers_are_served_whichever_process_does_the_work(running: Running) -> None:
    """Waiting, following, cancelling: one after the other, so that the processes are started once."""
    with client_of(running.api.url) as client:
        took = []
        for number in range(7):
            body = {"type": "nap", "task_id": f"N-{number}"}
            seconds, answer = timed(lambda body=body: client.post("/tasks?wait=20", json=body))
            assert (answer.status_code, answer.json()["status"]) == (201, "done")
            took.append(seconds)
        # Processes that only look need half a second each on average, for the beginning and for the end.
        assert sorted(took)[3] < (POLL / 2 if running.heard else 2 * POLL), took

        pieces = [f"piece {number}, " for number in range(20)]
        body = {"type": "writer", "task_id": "W-1", "payload": {"pieces": pieces, "pause": 0.05}}
        with stream(client, "POST", "/tasks", json=body, headers=LIVE) as live:
            events = list(live)
        assert statuses(events) == ["pending", "running", "done"]
        assert events[-1].kind == "end"
        assert events[-1].data["result"] == {"text": "".join(pieces)}
        written = "".join(event.data["text"] for event in events if event.kind == "text")
        told = [event.data["percent"] for event in events if event.kind == "progress"]
        if running.heard:
            assert written == "".join(pieces)
            assert told[-1] == 100
            assert len(told) > 3, "as it comes, and not all at the end"
        else:
            assert (written, told) == ("", []), "nothing carries it"

        client.post("/tasks", json={"type": "nap", "task_id": "C-1", "payload": {"seconds": 60}})
        until(lambda: client.get("/tasks/C-1").json()["status"] == "running")
        seconds, answer = timed(lambda: (client.post("/tasks/C-1/cancel"), client.get("/tasks/C-1?wait=20"))[1])
        assert answer.json()["status"] == "cancelled"
        assert seconds < (CANCEL / 2 if running.heard else CANCEL + 0.5), "half a second more to hear of it"


def cpu_seconds(process: BoardProcess) -> float:
    """What a process has computed so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.alone
def test_two_hundred_callers_cost_next_to_nothing_and_hear_of_it_together(
    board_process: StartBoard, trial_package: TrialPackage, postgres_url: str
) -> None:
    it = start(board_process, trial_package, postgres_url)
    address = urlsplit(it.api.url)
    head = f"GET /api/v1/tasks/N-1?wait=60 HTTP/1.1\r\nHost: {address.netloc}\r\nX-API-Key: {API_KEY}\r\n\r\n"

    async def wait() -> tuple[str, float]:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(head.encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(answer.lower().split("content-length: ")[1].split("\r\n")[0])
        status = str(json.loads(await reader.readexactly(length))["status"])
        writer.close()
        return status, time.monotonic()

    async def computed(doing: Awaitable[object]) -> float:
        before = cpu_seconds(it.api)
        await doing
        return cpu_seconds(it.api) - before

    def look_often(client: httpx2.Client) -> None:
        for _ in range(200):
            assert client.get("/tasks/N-1").json()["status"] == "running"

    async def all_wait(client: httpx2.Client) -> None:
        waiting = [asyncio.create_task(wait()) for _ in range(200)]
        await asyncio.sleep(3)  # until all have asked
        idle = await computed(asyncio.sleep(3))
        looks = await computed(asyncio.to_thread(look_often, client))
        assert idle < looks, "in three seconds all together less than one look each"
        assert not any(task.done() for task in waiting)
        await asyncio.to_thread(client.post, "/tasks/N-1/cancel")
        begin = time.monotonic()
        ended = await asyncio.wait_for(asyncio.gather(*waiting), 30)
        assert {status for status, _ in ended} == {"cancelled"}
        assert max(at for _, at in ended) - begin < 5

    with client_of(it.api.url) as client:
        client.post("/tasks", json=nap("N-1", 60))
        asyncio.run(all_wait(client))


# -- messages are lost ------------------------------------------------------------------------------------------------


def cut_for_good(url: str, until: threading.Event) -> None:
    """End every connection that listens, again and again."""
    with psycopg.connect(url, autocommit=True) as connection:
        while not until.wait(0.02):
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                "AND (query LIKE 'LISTEN%' OR query LIKE '%pg_notify%') AND pid <> pg_backend_pid()"
            )


def test_the_end_is_told_though_every_message_is_lost(
    board_process: StartBoard, trial_package: TrialPackage, postgres_url: str
) -> None:
    it = start(board_process, trial_package, postgres_url)
    over = threading.Event()
    with ThreadPoolExecutor(2) as threads, client_of(it.api.url) as client, client_of(it.api.url) as follower:
        cutting = threads.submit(cut_for_good, postgres_url, over)
        it.api.wait_for_log("signals over PostgreSQL are interrupted")
        for number in range(3):
            body = {"type": "nap", "task_id": f"N-{number}", "payload": {"seconds": 0.3}}
            with stream(client, "POST", "/tasks", json=body, headers=LIVE) as live:
                waiting = threads.submit(lambda n=number: follower.get(f"/tasks/N-{n}?wait=20"))
                assert statuses(live.until("end"))[-1] == "done"
            assert waiting.result(20).json()["status"] == "done"
        over.set()
        cutting.result(10)
        it.api.wait_for_log("signals over PostgreSQL are heard again")
    for process in (it.api, it.worker):
        assert "ERROR" not in process.log


def test_without_valkey_everything_goes_on_a_little_later(
    board_process: StartBoard, trial_package: TrialPackage, postgres_url: str, valkey_server: ValkeyServer
) -> None:
    it = start(board_process, trial_package, postgres_url, valkey_server.url)
    with client_of(it.api.url) as client:
        with stream(client, "POST", "/tasks", json=nap("N-1", 2.0), headers=LIVE) as live:
            live.until("status", "running")
            valkey_server.stop()
            assert live.until("end")[-1].data["status"] == "done"
        assert client.post("/tasks?wait=20", json=nap("N-2", 0.1)).json()["status"] == "done"
        valkey_server.start()
        for process in (it.api, it.worker):
            process.wait_for_log("signals over Redis are heard again")
        assert client.post("/tasks?wait=20", json=nap("N-3", 0.1)).json()["status"] == "done"
        valkey_server.freeze()
        assert client.post("/tasks?wait=20", json=nap("N-4", 0.1)).json()["status"] == "done"
    for process in (it.api, it.worker):
        assert process.log.count("signals over Redis are interrupted") == 1, process.log
        seconds, code = timed(lambda process=process: process.stop(LEAVES))
        assert code == 0
        assert seconds < LEAVES


def nap(task_id: str, seconds: float) -> dict[str, Any]:
    return {"type": "nap", "task_id": task_id, "payload": {"seconds": seconds}}


# -- a process stops --------------------------------------------------------------------------------------------------


@pytest.mark.alone
@pytest.mark.parametrize("role", ["api", "up"])
def test_a_stop_closes_open_streams_and_who_comes_back_misses_nothing(
    board_process: StartBoard, trial_package: TrialPackage, postgres_url: str, role: str
) -> None:
    first = board_process(role, database_url=postgres_url, env=trial_package.environment)
    with ExitStack() as opened, ThreadPoolExecutor(20) as threads:
        client = opened.enter_context(client_of(first.url))
        assert client.post("/types", json=TYPES).is_success
        client.post("/tasks", json=nap("N-1", 2.0) | {"run_after": "2100-01-01T00:00:00Z"})
        streams: list[Stream] = []
        for _ in range(20):
            mine = opened.enter_context(client_of(first.url))
            streams.append(opened.enter_context(stream(mine, "GET", "/tasks/N-1/stream")))
        last = [next(live) for live in streams][-1]
        closed = [threads.submit(lambda live=live: (list(live), time.monotonic())) for live in streams]
        begin = time.monotonic()
        assert first.stop(LEAVES) == 0
        rests = [future.result(10) for future in closed]
        assert [rest for rest, _ in rests] == [[]] * 20, "no end is told that is none"
        assert max(at for _, at in rests) - begin < 2
    second = board_process("up", database_url=postgres_url, env=trial_package.environment)
    with client_of(second.url) as client:
        assert client.post("/tasks/N-1/cancel").is_success
        with stream(client, "GET", "/tasks/N-1/stream", headers={"Last-Event-ID": last.id or ""}) as live:
            events: list[Event] = list(live)
    assert statuses(events) == ["cancelled"]
    assert events[-1].kind == "end"
