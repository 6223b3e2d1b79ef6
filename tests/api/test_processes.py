"""Several real processes on one database, and callers who all come at once."""

from __future__ import annotations

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest
from sqlalchemy import func, select

from board.db.engine import Database
from board.tasks.ledger import Lease, Ledger
from board.tasks.models import attempts, task_events, tasks
from board.tasks.states import Move
from tests.heart import WORKER, take
from tests.rig.board import StartBoard
from tests.rig.receiver import Receiver

TYPES = {"types": [{"name": "trial", "handler": {"use": "echo"}}]}
LOCAL = {"BOARD_ALLOW_PRIVATE_TARGETS": "127.0.0.1"}
# calls, and how long after the first one each of the others leaves, in seconds
BURSTS = [(2, 0.0), (20, 0.0), (2, 0.03), (3, 0.15), (20, 0.0), (20, 0.005)]


def test_the_same_task_sent_at_once_to_two_processes_is_made_once(
    board_process: StartBoard, database_url: str, receiver: Receiver
) -> None:
    """B001."""
    roles = ("api", "api", "worker")
    *apis, worker = [board_process(role, database_url=database_url, env=LOCAL, wait=False) for role in roles]
    for process in (*apis, worker):
        process.wait_until_up()
    with apis[0].api as first:
        assert first.post("/types", json=TYPES).is_success
    with ExitStack() as opened, ThreadPoolExecutor(20) as threads:
        clients = [opened.enter_context(apis[n % 2].api) for n in range(20)]
        for burst, (calls, apart) in enumerate(BURSTS):
            body = {
                "type": "trial",
                "task_id": f"B-{burst}",
                "payload": {"n": burst},
                "callback_url": f"{receiver.url}/{burst}",
            }
            answers = list(threads.map(_sender(clients, body, calls, apart), range(calls)))
            assert sorted(answer.status_code for answer in answers) == [200] * (calls - 1) + [201], burst
            assert {answer.json()["task_id"] for answer in answers} == {f"B-{burst}"}
            duplicates = [answer.json() for answer in answers if answer.status_code == 200]
            assert all(body["duplicate"] and "payload_differs" not in body for body in duplicates)
        for burst in range(len(BURSTS)):
            ended = clients[0].get(f"/tasks/B-{burst}?wait=30").json()
            assert ended["status"] == "done"
            tried = clients[0].get(f"/tasks/B-{burst}/attempts").json()["data"]
            assert len(tried) == 1, "one execution"
        called = receiver.wait_for(len(BURSTS))
        assert sorted(request.path for request in called) == [f"/{burst}" for burst in range(len(BURSTS))]
    db = Database(database_url)
    with db.read() as connection:
        assert connection.execute(select(func.count()).select_from(tasks)).scalar_one() == len(BURSTS)
    db.close()
    for api in apis:
        assert "IntegrityError" not in api.log
        assert "UNIQUE" not in api.log.upper()


def _sender(clients: list[httpx2.Client], body: dict[str, Any], calls: int, apart: float) -> Any:
    start = threading.Barrier(calls)
    never = threading.Event()

    def send(number: int) -> httpx2.Response:
        start.wait()
        never.wait(apart * number)
        return clients[number].post("/tasks", json=body)

    return send


SECONDS = 8.0
WORKERS = CLIENTS = 8


@pytest.mark.alone
def test_one_sqlite_file_serves_many_workers_and_callers(board_process: StartBoard, sqlite_url: str) -> None:
    """B035: no error, nothing lost, nothing run twice, and no caller waits long."""
    apis = [board_process("api", database_url=sqlite_url, wait=False) for _ in range(2)]
    for process in apis:
        process.wait_until_up()
    with apis[0].api as first:
        assert first.post("/types", json=TYPES).is_success
    posting, working = threading.Event(), threading.Event()
    with ThreadPoolExecutor(WORKERS + CLIENTS) as threads:
        workers = [threads.submit(_work, sqlite_url, number, working) for number in range(WORKERS)]
        posters = [threads.submit(_post, apis[number % 2].api, number, posting) for number in range(CLIENTS)]
        posting.wait(SECONDS)
        posting.set()
        sent = [poster.result() for poster in posters]
        working.set()
        done = [worker.result() for worker in workers]
    times = sorted(seconds for seconds_of, _ in sent for seconds in seconds_of)
    names = [name for _, mine in sent for name in mine]
    assert len(names) > CLIENTS * 5
    assert statistics.quantiles(times, n=20)[-1] < 1.0, f"p95 of {len(times)} calls"
    db = Database(sqlite_url)
    with db.read() as connection:
        stored = dict(connection.execute(select(tasks.c.task_id, tasks.c.status)).all())
        runs = connection.execute(select(func.count()).select_from(attempts)).scalar_one()
        moves = select(func.count()).select_from(task_events).where(task_events.c.kind == "done")
        assert connection.execute(moves).scalar_one() == len(names)
    db.close()
    assert set(stored) == set(names), "nothing is lost"
    assert set(stored.values()) == {"done"}
    assert sum(done) == runs == len(names), "nothing ran twice"
    assert all("locked" not in api.log for api in apis)


def _post(client: httpx2.Client, number: int, stop: threading.Event) -> tuple[list[float], list[str]]:
    times: list[float] = []
    names: list[str] = []
    with client:
        while not stop.is_set():
            name = f"C{number}-{len(names)}"
            begun = time.perf_counter()
            answer = client.post("/tasks", json={"type": "trial", "task_id": name, "priority": f"P{len(names) % 4}"})
            times.append(time.perf_counter() - begun)
            assert answer.status_code == 201, answer.text
            names.append(name)
    return times, names


def _work(url: str, number: int, stop: threading.Event) -> int:
    """A worker of its own, as another process would be: its own connections, its own turn."""
    db, ledger, done = Database(url), Ledger(), 0
    idle = threading.Event()
    try:
        while True:
            last_look = stop.is_set()
            with db.write() as tx:
                rows = take(tx, ledger, 4, f"w{number}")
            for row in rows:
                with db.write() as tx:
                    lease = Lease(row["id"], row["lease_token"])
                    assert ledger.settle(tx, lease, Move.SUCCEED, WORKER, data={"result": {}}) is not None
                done += 1
            if not rows:
                if last_look:
                    return done
                idle.wait(0.05)
    finally:
        db.close()


def test_several_of_a_role_may_start_at_once(board_process: StartBoard, database_url: str) -> None:
    started = [board_process("api", database_url=database_url, wait=False) for _ in range(3)]
    for process in started:
        process.wait_until_healthy()
