"""/claims over HTTP: n8n, or any program, as a worker."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import uvicorn

from board import settings
from board.app import build_app
from board.rooms import Board, open_board
from board.serve import listen
from board.serve_web import _Server
from board.tasks.bodies import TaskIn
from tests.api.conftest import Api, OpenApi
from tests.rig.working import CALLER

OUTSIDE = {"name": "outside", "handler": {"use": "outside"}, "require_id": False}
CALLS = {
    "heartbeat": {},
    "progress": {"percent": 5},
    "complete": {"result": {"label": "ok"}},
    "fail": {"message": "It broke.", "class": "permanent"},
    "release": {},
}


@pytest.fixture
def outside(api: Api) -> Api:
    api.types(OUTSIDE)
    return api


@pytest.fixture(scope="module")
def door(one_api: Api) -> Api:
    """One API for whatever is refused before anything is written."""
    one_api.types(OUTSIDE)
    return one_api


def claim(api: Api, **body: Any) -> list[dict[str, Any]]:
    answer = api.post("/claims", json={"worker": "flow-1"} | body)
    assert answer.status_code == 200, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


def call(api: Api, claim_id: str, name: str, **body: Any) -> httpx2.Response:
    return api.post(f"/claims/{claim_id}/{name}", json=CALLS[name] | body)


def test_the_whole_way_of_a_task(outside: Api) -> None:
    outside.submit(type="outside", payload={"text": "线索"})
    assert outside.task()["waiting_for"]["code"] == "outside"
    worker = outside.as_key("work")
    [claimed] = claim(worker, types=["outside"], lanes=["P2"], limit=5, lease=90)
    assert set(claimed) == {
        "claim_id",
        "lease_token",
        "lease_until",
        "inputs",
        "instruction",
        "former_output",
        "task",
    }
    assert (claimed["task"]["task_id"], claimed["task"]["status"]) == ("T-1", "running")
    assert claimed["task"]["payload"] == claimed["inputs"] == {"text": "线索"}
    assert claimed["lease_token"] == 1
    claim_id = claimed["claim_id"]
    standing = call(worker, claim_id, "heartbeat", lease=120).json()
    assert standing["lease_until"] > claimed["lease_until"]
    assert (standing["claim_id"], standing["cancel_requested"]) == (claim_id, False)
    assert call(worker, claim_id, "progress", message="half", lease_token=1).status_code == 200
    [attempt] = outside.get("/tasks/T-1/attempts").json()["data"]
    assert (attempt["worker"], attempt["progress"]["percent"], attempt["progress"]["message"]) == (
        "key:n8n/flow-1",
        5,
        "half",
    )
    done = call(worker, claim_id, "complete", judgement={"summary": "s", "confidence": 0.9})
    assert (done.status_code, done.json()["status"], done.json()["result"]) == (200, "done", {"label": "ok"})
    assert "repeated" not in done.json()
    assert [(event["kind"], event["actor"]) for event in outside.events()][1:] == [
        ("started", {"kind": "key", "name": "n8n/flow-1"}),
        ("done", {"kind": "key", "name": "n8n/flow-1"}),
    ]


@pytest.mark.parametrize("name", ["complete", "fail", "release"])
def test_every_end_may_be_sent_twice(outside: Api, name: str) -> None:
    outside.submit(type="outside")
    claim_id = claim(outside)[0]["claim_id"]
    first, second = call(outside, claim_id, name), call(outside, claim_id, name)
    assert (first.status_code, second.status_code) == (200, 200)
    assert second.json() == first.json() | {"repeated": True}


@pytest.mark.parametrize("name", ["heartbeat", "release"])
def test_a_call_without_fields_needs_no_body(outside: Api, name: str) -> None:
    outside.submit(type="outside")
    claim_id = claim(outside)[0]["claim_id"]
    assert outside.post(f"/claims/{claim_id}/{name}").status_code == 200


def test_another_result_after_the_first_is_409(outside: Api) -> None:
    outside.submit(type="outside")
    claim_id = claim(outside)[0]["claim_id"]
    call(outside, claim_id, "complete")
    refused = call(outside, claim_id, "complete", result="another")
    assert (refused.status_code, refused.json()["code"]) == (409, "claim_lost")
    assert refused.json()["details"] == [{"reason": "completed"}]
    assert outside.task()["result"] == {"label": "ok"}


@pytest.mark.parametrize("name", CALLS)
def test_a_claim_of_another_key_is_404_and_so_is_none_at_all(outside: Api, name: str) -> None:
    outside.submit(type="outside")
    claim_id = claim(outside)[0]["claim_id"]
    other = outside.as_key("work", name="other")
    for number in (claim_id, "0", "4711", "abc", "9" * 40, "١"):
        refused = call(other, number, name)
        assert (refused.status_code, refused.json()["code"]) == (404, "claim_not_found")
    assert outside.task()["status"] == "running"


@pytest.mark.parametrize("scope", ["submit", "read", "review"])
def test_without_the_scope_work_nothing_goes(outside: Api, scope: str) -> None:
    outside.submit(type="outside")
    claim_id = claim(outside)[0]["claim_id"]
    key = outside.as_key(scope, name=scope)
    answers = [key.post("/claims", json={"worker": "w"}), *(call(key, claim_id, name) for name in CALLS)]
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert "work" in answer.json()["message"]
    assert outside.task()["status"] == "running"


def test_a_key_that_only_works_may_nothing_else(outside: Api) -> None:
    outside.submit(type="outside")
    worker = outside.as_key("work")
    assert worker.get("/tasks").status_code == 403
    assert worker.get("/tasks/T-1").status_code == 404
    assert worker.post("/tasks", json={"type": "outside"}).status_code == 403


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/claims", {}, "worker"),
        ("/claims", {"worker": ""}, "worker"),
        ("/claims", {"worker": " w"}, "worker"),
        ("/claims", {"worker": "a\nb"}, "worker"),
        ("/claims", {"worker": "w" * 76}, "worker"),
        ("/claims", {"worker": 7}, "worker"),
        ("/claims", {"worker": "w", "limit": 0}, "limit"),
        ("/claims", {"worker": "w", "limit": 51}, "limit"),
        ("/claims", {"worker": "w", "limit": 1.5}, "limit"),
        ("/claims", {"worker": "w", "lease": 0.5}, "lease"),
        ("/claims", {"worker": "w", "lease": 3601}, "lease"),
        ("/claims", {"worker": "w", "lease": "1m"}, "lease"),
        ("/claims", {"worker": "w", "types": []}, "types"),
        ("/claims", {"worker": "w", "types": "outside"}, "types"),
        ("/claims", {"worker": "w", "types": ["no-such"]}, "types[0]"),
        ("/claims", {"worker": "w", "lanes": []}, "lanes"),
        ("/claims", {"worker": "w", "lanes": ["P4"]}, "lanes.0"),
        ("/claims", {"worker": "w", "lane": "P1"}, "lane"),
        ("/claims?wait=61", {"worker": "w"}, "wait"),
        ("/claims?wait=-1", {"worker": "w"}, "wait"),
        ("/claims/1/heartbeat", {"lease": 0}, "lease"),
        ("/claims/1/heartbeat", {"lease": 3601}, "lease"),
        ("/claims/1/heartbeat", {"seconds": 5}, "seconds"),
        ("/claims/1/progress", {"percent": 101}, "percent"),
        ("/claims/1/progress", {"percent": -1}, "percent"),
        ("/claims/1/progress", {"message": "m" * 1001}, "message"),
        ("/claims/1/complete", {}, "result"),
        ("/claims/1/complete", {"result": 1, "review": "sometimes"}, "review"),
        ("/claims/1/complete", {"result": 1, "judgement": {"confidance": 1}}, "judgement.confidance"),
        ("/claims/1/complete", {"result": 1, "judgement": "good"}, "judgement"),
        ("/claims/1/complete", {"result": 1, "output": 1}, "output"),
        ("/claims/1/fail", {}, "message"),
        ("/claims/1/fail", {"message": ""}, "message"),
        ("/claims/1/fail", {"message": "m", "class": "fatal"}, "class"),
        ("/claims/1/fail", {"message": "m", "retry_after": -1}, "retry_after"),
        ("/claims/1/fail", {"message": "m", "code": "c" * 201}, "code"),
        ("/claims/1/release", {"reason": "r"}, "reason"),
        ("/claims/1/complete", {"result": {"a": ["\0"]}}, "result.a[0]"),
        ("/claims/1/complete", {"result": "\ud800"}, "result"),
        ("/claims/1/fail", {"message": "\0"}, "message"),
    ],
)
def test_what_does_not_fit_is_422_and_names_the_field(door: Api, path: str, body: dict[str, Any], field: str) -> None:
    refused = door.post(path, content=json.dumps(body))
    assert refused.status_code == 422, refused.text
    assert refused.json()["details"][0]["field"] == field
    assert field in refused.json()["message"]


def test_a_result_may_be_any_json(outside: Api) -> None:
    for number, result in enumerate([None, False, 0, "", [], {}, [1, {"a": None}], "x" * 100_000]):
        outside.submit(f"T-{number}", type="outside")
        answer = call(outside, claim(outside)[0]["claim_id"], "complete", result=result)
        assert (answer.status_code, answer.json()["result"]) == (200, result)


def test_a_long_failure_text_is_cut_not_refused(outside: Api) -> None:
    outside.submit(type="outside")
    answer = call(outside, claim(outside)[0]["claim_id"], "fail", message="trace " * 5000)
    assert (answer.status_code, answer.json()["status"]) == (200, "failed")
    assert answer.json()["last_error"].startswith("trace trace")
    assert len(answer.json()["last_error"]) == 1000


def test_cancelled_meanwhile(outside: Api) -> None:
    outside.submit(type="outside")
    claim_id = claim(outside)[0]["claim_id"]
    outside.post("/tasks/T-1/cancel")
    for name in ("heartbeat", "progress"):
        answer = call(outside, claim_id, name)
        assert (answer.status_code, answer.json()["cancel_requested"]) == (200, True)
    refused = call(outside, claim_id, "complete")
    assert (refused.status_code, refused.json()["code"]) == (409, "claim_lost")
    assert refused.json()["details"] == [{"reason": "cancelled"}]
    assert outside.task()["status"] == "cancelled"


# -- waiting for work ---------------------------------------------------------------------------------------------


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def waiting(api: Api, threads: ThreadPoolExecutor, seconds: float = 20) -> Future[tuple[list[dict[str, Any]], float]]:
    """A claim that waits: its tasks, and when the answer came."""

    def wait() -> tuple[list[dict[str, Any]], float]:
        answer = api.post("/claims", json={"worker": "flow-1"}, params={"wait": seconds})
        assert answer.status_code == 200
        return answer.json()["data"], time.monotonic()

    listening = len(api.board.claims.arrivals._listening)
    future = threads.submit(wait)
    end = time.monotonic() + 10
    while len(api.board.claims.arrivals._listening) == listening:
        assert time.monotonic() < end
        time.sleep(0.005)
    return future


@pytest.mark.alone
def test_who_waits_is_woken_at_once(outside: Api, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("board.api.claims.PAUSE", 60)  # so that looking by itself cannot be what finds the task
    delays = []
    for number in range(6):
        answer = waiting(outside, threads)
        posted = time.monotonic()
        outside.submit(f"T-{number}", type="outside")
        data, at = answer.result(15)
        assert [it["task"]["task_id"] for it in data] == [f"T-{number}"]
        delays.append(at - posted)
    assert sorted(delays)[3] < 0.5, delays


def test_one_task_goes_to_one_of_those_who_wait(outside: Api, threads: ThreadPoolExecutor) -> None:
    answers = [waiting(outside, threads, 2) for _ in range(4)]
    outside.submit(type="outside")
    assert sorted(len(answer.result(15)[0]) for answer in answers) == [0, 0, 0, 1]


@pytest.mark.alone
def test_a_task_of_another_process_is_found_within_a_second(
    outside: Api, threads: ThreadPoolExecutor, database_url: str, tmp_path: Path
) -> None:
    elsewhere = open_board(settings.load(database_url=database_url, data_dir=tmp_path / "data"))
    answer = waiting(outside, threads)
    posted = time.monotonic()
    submit(elsewhere)
    elsewhere.close()
    data, at = answer.result(15)
    assert [it["task"]["task_id"] for it in data] == ["T-1"]
    assert at - posted < 2


def submit(board: Board, task_id: str = "T-1") -> None:
    with board.db.write() as tx:
        board.intake.take(tx, TaskIn(type="outside", task_id=task_id), CALLER)


def test_the_waiting_ends_with_an_empty_list(outside: Api) -> None:
    began = time.monotonic()
    answer = outside.post("/claims?wait=0.6", json={"worker": "w"})
    assert answer.json() == {"data": []}
    assert 0.6 <= time.monotonic() - began < 5


def test_who_has_hung_up_is_given_nothing(outside: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time-out on the other side must not cost the task an attempt."""
    monkeypatch.setattr("board.api.claims.PAUSE", 0.1)
    arrivals = outside.board.claims.arrivals
    address = urlsplit(outside.url)
    body = b'{"worker": "gone"}'
    head = (
        f"POST /api/v1/claims?wait=30 HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {outside.key}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((address.hostname, address.port)) as line:
        line.sendall(head.encode() + body)
        until(lambda: bool(arrivals._listening))
    until(lambda: not arrivals._listening)
    outside.submit(type="outside")
    assert outside.task()["status"] == "pending"
    assert [it["lease_token"] for it in claim(outside)] == [1]


def until(holds: Any, seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def test_a_server_that_stops_answers_who_waits_at_once(
    outside: Api, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("board.api.claims.PAUSE", 60)
    bound = listen("127.0.0.1", 0)
    config = uvicorn.Config(build_app(outside.board), log_config=None, lifespan="off", timeout_graceful_shutdown=30)
    server = _Server(config, outside.board, lambda: None)
    serving = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    serving.start()
    there = replace(outside, url=f"http://127.0.0.1:{bound.getsockname()[1]}")
    answer = waiting(there, threads, 50)
    stopped = time.monotonic()
    server.should_exit = True
    data, at = answer.result(20)
    serving.join(20)
    assert (data, at - stopped < 5, serving.is_alive()) == ([], True, False)


def test_a_board_that_works_itself_leaves_outside_work_alone(open_api: OpenApi) -> None:
    """The board's own consumer beside the claims: it never takes what waits for outside workers."""
    api = open_api(work=True)
    api.types(OUTSIDE)
    api.submit("T-1", type="outside")
    api.submit("T-2")
    assert api.get("/tasks/T-2?wait=15").json()["status"] == "done"
    assert api.task("T-1")["status"] == "pending"
    [claimed] = claim(api)
    assert claimed["task"]["task_id"] == "T-1"
