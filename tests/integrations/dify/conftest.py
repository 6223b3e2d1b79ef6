"""The Dify stand-in behind a real socket, one for all tests of this folder, forgetful between them."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import uvicorn

from integrations.demo.dify_app import create_app
from tests.integrations.dify import cases
from tests.integrations.dify.doubles import KEY, NotedJob, connection

RUN_ID = "11111111-aaaa-4bbb-8ccc-0123456789d0"  # the run of the recorded streams


@dataclass(slots=True)
class Standin:
    """A running stand-in. `url` is the base address of a connection."""

    base: str
    client: httpx.Client

    @property
    def url(self) -> str:
        return f"{self.base}/v1"

    def faults(self, *faults: str | dict[str, Any], **pace: float) -> None:
        answer = self.client.post("/_standin/faults", json={"faults": list(faults), "pace": pace})
        assert answer.status_code == 200, answer.text

    def play(self, name: str, **fields: Any) -> None:
        """Answer the next run with a recorded stream, in the pieces that the case asks for."""
        raw = base64.b64encode(cases.sse(name)).decode()
        self.faults({"fault": "raw", "raw": raw, **cases.SSE[name]["feed_in_chunks"], **fields})

    def seen(self) -> dict[str, Any]:
        seen: dict[str, Any] = self.client.get("/_standin/runs").json()
        return seen

    def runs_asked_for(self) -> list[dict[str, Any]]:
        return [entry for entry in self.seen()["requests"] if entry["path"].endswith("/workflows/run")]

    def job(
        self, text: str = "We need 200 seats by May.", *, key: str = KEY, grace: float = 0.5, **fields: Any
    ) -> NotedJob:
        return NotedJob(connection(self.url, key, grace=grace), {"text": text}, **fields)


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """An ASGI application behind a real socket, in a thread; its base address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # from here on calls wait in line, whenever the server is ready
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=15)


@pytest.fixture(scope="session")
def standin_process() -> Iterator[Standin]:
    with serving(create_app()) as base, httpx.Client(base_url=base, trust_env=False, verify=False) as client:
        yield Standin(base, client)


@pytest.fixture
def standin(standin_process: Standin) -> Standin:
    answer = standin_process.client.post(
        "/_standin/faults",
        json={"reset": True, "pace": {"run": 0.1, "ping_every": 10.0, "idle_limit": 300.0}},
    )
    assert answer.status_code == 200
    return standin_process
