"""The runs of the stand-in: one record each, its events, and the book that keeps them in memory."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from integrations.demo.apps import DemoApp
from integrations.demo.faults import Plan
from integrations.demo.wire import JsonObject

KEPT = 5000  # runs, requests and hook calls kept; a demo that stays up for weeks must not eat the memory

ENDED = ("succeeded", "failed", "stopped", "partial-succeeded")
LAST_EVENTS = ("workflow_finished", "workflow_paused")


@dataclass(eq=False, slots=True)
class Run:
    """One workflow run. Before `created_at` is set its job still waits for a worker and nobody can see it."""

    app: DemoApp
    user: str
    inputs: JsonObject  # the declared ones only
    plan: Plan
    id: str
    files: list[JsonObject] = field(default_factory=list)
    task_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    log_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    end_user_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: str = "queued"
    outputs: JsonObject = field(default_factory=dict)
    error: str | None = None
    tokens: int = 0
    steps: int = 0
    exceptions: int = 0
    created_at: float | None = None
    finished_at: float | None = None
    events: list[JsonObject] = field(default_factory=list)
    form: JsonObject | None = None  # the open human-input form while paused
    form_answer: JsonObject | None = None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    bell: asyncio.Event = field(default_factory=asyncio.Event)  # rings once at the next change, then is replaced

    def ring(self) -> None:
        bell, self.bell = self.bell, asyncio.Event()
        bell.set()

    def emit(self, event: str, data: JsonObject) -> None:
        self.events.append({"event": event, "task_id": self.task_id, "workflow_run_id": self.id, "data": data})
        self.ring()

    @property
    def visible(self) -> bool:
        return self.created_at is not None and self.plan.recorded and self.plan.detail != "missing"

    @property
    def shown_status(self) -> str:
        return "running" if self.plan.detail == "running" else self.status

    @property
    def elapsed(self) -> float:
        if self.created_at is None:
            return 0.0
        return round((self.finished_at or time.time()) - self.created_at, 3)

    async def settled(self) -> None:
        """Returns when the run has ended or waits for a person."""
        while self.status not in (*ENDED, "paused"):
            await self.bell.wait()

    def all_inputs(self) -> JsonObject:
        """Inputs as Dify stores them: the caller's and its own sys.* keys."""
        return self.inputs | {
            "sys.files": self.files,
            "sys.user_id": self.user,
            "sys.app_id": self.app.id,
            "sys.workflow_id": self.app.workflow_id,
            "sys.workflow_run_id": self.id,
        }

    def result(self) -> JsonObject:
        """`data` of workflow_finished and of a blocking answer."""
        return {
            "id": self.id,
            "workflow_id": self.app.workflow_id,
            "status": self.status,
            "outputs": self.outputs,
            "error": self.error,
            "elapsed_time": self.elapsed,
            "total_tokens": self.tokens,
            "total_steps": self.steps,
            "created_at": _seconds(self.created_at),
            "finished_at": _seconds(self.finished_at),
        }

    def detail(self) -> JsonObject:
        """GET /workflows/run/{id}: inputs are a JSON text, outputs are {} until the end."""
        open_ = self.shown_status not in ENDED
        return self.result() | {
            "status": self.shown_status,
            "inputs": json.dumps(self.all_inputs()),
            "outputs": {} if open_ else self.outputs,
            "finished_at": None if open_ else _seconds(self.finished_at),
        }

    def log_row(self) -> JsonObject:
        """One row of GET /workflows/logs."""
        open_ = self.shown_status not in ENDED
        return {
            "id": self.log_id,
            "workflow_run": {
                "id": self.id,
                "version": "demo",
                "status": self.shown_status,
                "triggered_from": "app-run",
                "error": self.error,
                "elapsed_time": self.elapsed,
                "total_tokens": self.tokens,
                "total_steps": self.steps,
                "created_at": _seconds(self.created_at),
                "finished_at": None if open_ else _seconds(self.finished_at),
                "exceptions_count": self.exceptions,
            },
            "details": None,
            "created_from": "service-api",
            "created_by_role": "end_user",
            "created_by_account": None,
            "created_by_end_user": {
                "id": self.end_user_id,
                "type": "service_api",
                "is_anonymous": False,
                "session_id": self.user,
            },
            "created_at": _seconds(self.created_at),
        }

    def record(self) -> JsonObject:
        """What GET /_standin/runs shows of it: the truth, whatever the API says."""
        return {
            "id": self.id,
            "task_id": self.task_id,
            "app": self.app.key,
            "user": self.user,
            "inputs": self.inputs,
            "files": self.files,
            "status": self.status,
            "outputs": self.outputs,
            "error": self.error,
            "created_at": self.created_at,
            "finished_at": self.finished_at,
            "events": [event["event"] for event in self.events],
        }


class RunBook:
    """All runs of one stand-in, oldest first. `started` counts every run ever begun, also forgotten ones."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.started = 0
        self._tasks: set[asyncio.Task[None]] = set()  # a task that nobody holds may be collected while it works

    def add(self, run: Run, work: Coroutine[Any, Any, None]) -> None:
        """Keep the run and let its coroutine live on by itself, whoever listens."""
        self.started += 1
        self.runs.append(run)
        del self.runs[:-KEPT]
        self.hold(work)

    def hold(self, work: Coroutine[Any, Any, None]) -> None:
        """Let a coroutine work on by itself."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def find(self, app: DemoApp, run_id: str) -> Run | None:
        """The visible run with this id of this app."""
        return next((run for run in reversed(self.runs) if run.id == run_id and run.app is app and run.visible), None)

    def by_task(self, task_id: str) -> Run | None:
        return next((run for run in reversed(self.runs) if run.task_id == task_id), None)

    def by_form(self, app: DemoApp, token: str) -> Run | None:
        return next((run for run in self.runs if run.app is app and run.form and run.form["form_token"] == token), None)

    def clear(self) -> None:
        for task in self._tasks:
            task.cancel()
        self.runs.clear()
        self.started = 0


def _seconds(moment: float | None) -> int | None:
    return None if moment is None else int(moment)
