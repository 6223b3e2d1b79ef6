"""Many callers who put tasks in at the same moment share one transaction, and none notices the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from sqlalchemy import event

from board.api.taking import Taking
from board.tasks.intake import Problem
from tests.api.conftest import Api, OpenApi


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "not all callers have come"
        time.sleep(0.005)


class Gathered:
    """Holds the first batch until all callers have asked, so that the rest comes in one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self._first, self._go = threading.Event(), threading.Event()
        work = Taking._take_many

        def take(taking: Taking, batch: Sequence[Any]) -> Any:
            self.sizes.append(len(batch))
            if len(self.sizes) == 1:
                self._first.set()
                assert self._go.wait(30)
            return work(taking, batch)

        monkeypatch.setattr(Taking, "_take_many", take)
        self._came = 0
        ask = Taking.take

        async def came(taking: Taking, asked: Any) -> Any:
            self._came += 1  # and in the same step of the loop it stands in line
            return await ask(taking, asked)

        monkeypatch.setattr(Taking, "take", came)

    def post(self, api: Api, bodies: Sequence[tuple[Api, dict[str, Any]]]) -> list[httpx2.Response]:
        """The answers to all bodies, sent at once while a first caller keeps the line."""
        with ThreadPoolExecutor(len(bodies) + 1) as pool:
            first = pool.submit(api.post, "/tasks", json={"type": "trial", "task_id": "first"})
            assert self._first.wait(30)
            answers = [pool.submit(it.post, "/tasks", json=body) for it, body in bodies]
            until(lambda: self._came == len(bodies) + 1)
            self._go.set()
            assert first.result().status_code == 201
            return [it.result() for it in answers]


@pytest.fixture(autouse=True)  # before the application is built
def gathered(monkeypatch: pytest.MonkeyPatch) -> Gathered:
    return Gathered(monkeypatch)


def test_many_at_once_cost_a_few_statements(api: Api, gathered: Gathered) -> None:
    counted: list[str] = []
    for engine in (api.board.db._reader, api.board.db._writer):
        event.listen(engine, "before_cursor_execute", lambda *given: counted.append(given[2]))
    bodies = [(api, {"type": "trial", "task_id": f"T-{n}", "payload": {"n": n}}) for n in range(30)]
    answers = gathered.post(api, bodies)
    assert {it.status_code for it in answers} == {201}
    for number, it in enumerate(answers):
        assert (it.json()["task_id"], it.json()["payload"]) == (f"T-{number}", {"n": number})
    assert gathered.sizes[0] == 1
    assert max(gathered.sizes) > 10
    asked_for_keys = 31
    assert len(counted) < asked_for_keys + 25 * len(gathered.sizes)


def test_each_gets_what_it_deserves(api: Api, gathered: Gathered) -> None:
    api.post("/tasks/bulk", json={"tasks": [{"type": "trial", "task_id": "there", "payload": {"a": 1}}]})
    n8n, other = api.as_key("submit", name="n8n"), api.as_key("submit", name="other")
    limited = api.as_key("submit", name="limited")
    bodies: list[tuple[Api, dict[str, Any], int, str | None]] = [
        (n8n, {"type": "trial", "task_id": "new"}, 201, None),
        (n8n, {"type": "nothing", "task_id": "x"}, 422, "unknown_type"),
        (n8n, {"type": "trial", "task_id": "a/b"}, 422, "bad_task_id"),
        (api, {"type": "trial", "task_id": "there", "payload": {"a": 2}}, 200, None),
        (other, {"type": "trial", "task_id": "there", "payload": {"a": 1}}, 200, None),
        (api, {"type": "trial", "task_id": "there", "on_duplicate": "reject"}, 409, "duplicate"),
        (other, {"type": "trial", "task_id": "twin"}, 0, None),
        (n8n, {"type": "trial", "task_id": "twin"}, 0, None),
        (limited, {"type": "trial", "task_id": "rated"}, 201, None),
    ]
    answers = gathered.post(api, [(who, body) for who, body, *_ in bodies])
    for (_, body, status, code), answer in zip(bodies, answers, strict=True):
        if status:
            assert answer.status_code == status, (body, answer.text)
            assert answer.json().get("code") == code
    assert answers[3].json()["payload_differs"] is True
    assert set(answers[4].json()) == {"task_id", "status", "duplicate"}, "somebody else's task is not shown"
    twins = sorted((answers[6], answers[7]), key=lambda it: it.status_code, reverse=True)
    assert [it.status_code for it in twins] == [201, 200]
    assert twins[1].json()["duplicate"] is True
    assert api.task("new")["source"] is None
    requesters = {it["task_id"]: it["actor"]["name"] for it in (api.events("new")[0] | {"task_id": "new"},)}
    assert requesters == {"new": "n8n"}


def test_one_that_breaks_the_batch_leaves_the_others_whole(
    api: Api, gathered: Gathered, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = api.board.intake.store

    def breaks(tx: Any, items: Any, *more: Any) -> Any:
        if any(body.task_id == "bad" for body, _ in items):
            raise Problem("payload", "The database refuses it.")
        return store(tx, items, *more)

    monkeypatch.setattr(api.board.intake, "store", breaks)
    bodies = [(api, {"type": "trial", "task_id": name}) for name in ("one", "bad", "two")]
    answers = gathered.post(api, bodies)
    assert [it.status_code for it in answers] == [201, 422, 201]
    assert api.get("/tasks/bad").status_code == 404


def test_who_waits_for_the_result_gets_his_own(open_api: OpenApi, gathered: Gathered) -> None:
    api = open_api(work=True)
    bodies = [(api, {"type": "trial", "task_id": f"T-{n}", "payload": {"n": n}}) for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        gathered._go.set()
        asked = [pool.submit(it.post, "/tasks?wait=30", json=body) for it, body in bodies]
        answers = [it.result() for it in asked]
    assert [(it.status_code, it.json()["status"], it.json()["result"]) for it in answers] == [
        (201, "done", {"n": n}) for n in range(8)
    ]
