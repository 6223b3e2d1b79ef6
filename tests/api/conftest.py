"""The API over real HTTP: a server of this process on each database, with and without a consumer."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx2
import pytest

from board import settings
from board.access import keys
from board.app import build_app
from board.catalogue.apply import apply
from board.ports import Handler
from board.rooms import Board, open_board
from board.worker.registry import load_handlers
from tests.heart import settable_clock
from tests.rig.asgi import serve

BOOTSTRAP = "a-key-for-tests-with-all-scopes"
TRIAL = {"name": "trial", "handler": {"use": "echo"}}
ASK = {"name": "ask", "handler": {"use": "none"}, "require_id": False}


@dataclass
class Api:
    """`api.post("/tasks", json={…})`; another key: `api.as_key("submit").post(…)`."""

    board: Board
    url: str
    key: str = BOOTSTRAP
    opened: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        client = httpx2.Client(
            base_url=f"{self.url}/api/v1",
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=30,
            trust_env=False,
            verify=False,
        )
        self.client = self.opened.enter_context(client)

    def request(self, method: str, path: str, **more: Any) -> httpx2.Response:
        """The answer, which has the form that the contract promises for every answer."""
        answer = self.client.request(method, path, **more)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-request-id"]
        body = answer.json()
        assert isinstance(body, dict), "never a bare list"
        if answer.is_success:
            assert "error" not in body
        else:
            assert set(body) == {"message", "code", "details", "request_id"}
            assert body["request_id"] == answer.headers["x-request-id"]
            assert body["message"]
            assert "Traceback" not in answer.text
        return answer

    def get(self, path: str, **more: Any) -> httpx2.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx2.Response:
        return self.request("POST", path, **more)

    def patch(self, path: str, **more: Any) -> httpx2.Response:
        return self.request("PATCH", path, **more)

    def as_key(self, *scopes: str, name: str = "n8n") -> Api:
        """The same API with a key of these scopes."""
        with self.board.db.write() as tx:
            secret = keys.create(tx, name, scopes)
        return Api(self.board, self.url, secret, self.opened)

    def types(self, *types: dict[str, Any], connections: list[dict[str, Any]] | None = None) -> None:
        data = {"types": list(types), "connections": connections or []}
        with self.board.db.write() as tx:
            apply(tx, data, handlers=self.board.handlers, vault=self.board.vault, author="key:test")

    def submit(self, task_id: str = "T-1", type: str = "trial", **body: Any) -> dict[str, Any]:
        answer = self.post("/tasks", json={"type": type, "task_id": task_id, **body})
        assert answer.status_code in (200, 201), answer.text
        task: dict[str, Any] = answer.json()
        return task

    def task(self, task_id: str = "T-1") -> dict[str, Any]:
        task: dict[str, Any] = self.get(f"/tasks/{task_id}").json()
        return task

    def events(self, task_id: str = "T-1") -> list[dict[str, Any]]:
        data: list[dict[str, Any]] = self.get(f"/tasks/{task_id}/events").json()["data"]
        return data


class OpenApi(Protocol):
    def __call__(self, *handlers: Handler, work: bool = False, **given: Any) -> Api: ...


def _opener(database_url: str, folder: Path, opened: ExitStack) -> OpenApi:
    def open_(*handlers: Handler, work: bool = False, **given: Any) -> Api:
        values = {"bootstrap_api_key": BOOTSTRAP, "data_dir": folder / "data", "concurrency": 4} | given
        loaded = settings.load(database_url=database_url, **values)
        board = open_board(loaded, handlers=lambda: load_handlers() | {it.name: it for it in handlers})
        opened.callback(board.close)
        if work:
            consumer = board.make_consumer()
            consumer.start()
            opened.callback(consumer.stop)
        api = Api(board, opened.enter_context(serve(build_app(board))), opened=opened)
        api.types(TRIAL, ASK)
        return api

    return open_


@pytest.fixture
def open_api(database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[OpenApi]:
    """`open_api(work=True, max_json="1KB")`: a served board with these settings. Nothing may be logged as an error."""
    with ExitStack() as opened:
        yield _opener(database_url, tmp_path, opened)
    assert not [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR]


@pytest.fixture
def api(open_api: OpenApi) -> Api:
    """The API without a consumer: what is put in stays pending."""
    return open_api()


@pytest.fixture(scope="module")
def one_api(_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """One API on SQLite for all tests of a module: for what is refused before any table is written."""
    folder = tmp_path_factory.mktemp("one")
    with closing(sqlite3.connect(_sqlite_template)) as source, closing(sqlite3.connect(folder / "board.db")) as target:
        source.backup(target)
    with ExitStack() as opened:
        yield _opener(f"sqlite:///{folder / 'board.db'}", folder, opened)()


@pytest.fixture
def at(api: Api) -> Iterator[Any]:
    with settable_clock(api.board.db) as shift:
        yield shift
