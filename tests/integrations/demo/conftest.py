"""A stand-in served by uvicorn on a port of its own, in the test's event loop, and a client that speaks to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest_asyncio
import uvicorn

from integrations.demo.dify_app import create_app
from integrations.demo.runs import Run
from integrations.demo.standin import StandIn

TEXT = "Please send a quote for 400 boxes, our budget is £1,200, we need them next week."


@dataclass(slots=True)
class Client:
    """Calls with the key of the leads app."""

    http: httpx.AsyncClient
    memory: StandIn

    async def start(self, fault: str | None = None, mode: str = "streaming", **body: Any) -> httpx.Response:
        inputs = {"text": TEXT} | ({"standin_fault": fault} if fault else {}) | body.pop("inputs", {})
        full = {"inputs": inputs, "user": "board:1:1", "response_mode": mode} | body
        return await self.http.post("/v1/workflows/run", json=full)

    async def streamed(self, fault: str | None = None, **body: Any) -> list[dict[str, Any]]:
        answer = await self.start(fault, **body)
        assert answer.status_code == 200, answer.text
        return events_of(answer.text)

    async def until_open(self, fault: str, stop_at: str = "text_chunk") -> list[str]:
        """The lines of a stream that stays open, up to the given one."""
        lines: list[str] = []
        body = {"inputs": {"text": TEXT, "standin_fault": fault}, "user": "board:1:1", "response_mode": "streaming"}
        async with self.http.stream("POST", "/v1/workflows/run", json=body) as answer:
            async for line in answer.aiter_lines():
                lines.append(line)
                if stop_at in line:
                    break
        return lines

    async def detail(self, run_id: str) -> dict[str, Any]:
        answer = await self.http.get(f"/v1/workflows/run/{run_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def log(self, **query: Any) -> list[dict[str, Any]]:
        answer = await self.http.get("/v1/workflows/logs", params=query)
        assert answer.status_code == 200, answer.text
        rows: list[dict[str, Any]] = answer.json()["data"]
        return rows

    @property
    def run(self) -> Run:
        """The run begun last."""
        return self.memory.book.runs[-1]


def events_of(stream: str) -> list[dict[str, Any]]:
    return [json.loads(block[6:]) for block in stream.split("\n\n") if block.startswith("data: ")]


def names(events: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in events]


def last(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The data of the closing event."""
    assert events[-1]["event"] == "workflow_finished"
    data: dict[str, Any] = events[-1]["data"]
    return data


@contextlib.asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """The application on a free port; yields its address."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(128)  # a request that comes before the server is up waits in this queue
        config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served() -> AsyncIterator[tuple[StandIn, str]]:
    """One server for a module, because stopping one takes longer than most tests."""
    app = create_app()
    async with serving(app) as address:
        yield app.state.standin, address


@pytest_asyncio.fixture(loop_scope="module")
async def dify(served: tuple[StandIn, str]) -> AsyncIterator[Client]:
    """A stand-in that remembers nothing and is quick. Its tests must run in the module's event loop."""
    memory, address = served
    memory.reset()
    memory.pace.run, memory.pace.ping_every, memory.pace.idle_limit = 0.05, 0.05, 0.4
    headers = {"Authorization": "Bearer app-demo-leads"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=10, trust_env=False) as http:
        yield Client(http, memory)
