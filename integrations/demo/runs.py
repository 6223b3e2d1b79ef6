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
# Apps whose runs the workflow engine makes; the others answer in the API's own process.
BY_ENGINE = ("workflow", "advanced-chat")
LAST_EVENTS = {True: ("workflow_finished", "workflow_paused"), False: ("message_end", "error")}  # by the engine or not
SPOKEN = {"workflow": "text_chunk", "agent-chat": "agent_message", "agent": "agent_message"}  # else: message


@dataclass(eq=False, slots=True)
class Run:
    """One run of an app. Before `created_at` is set its job still waits for a worker and nobody can see it."""

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
    closed_forms: list[str] = field(default_factory=list)  # tokens of forms that were answered or have expired
    query: str = ""
    conversation_id: str = ""
    message_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    answer: str = ""  # what a chat or completion app has said so far
    lost: bool = False  # nobody listened any more, so the answer was never saved
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    bell: asyncio.Event = field(default_factory=asyncio.Event)  # rings once at the next change, then is replaced

    def ring(self) -> None:
        bell, self.bell = self.bell, asyncio.Event()
        bell.set()

    @property
    def by_engine(self) -> bool:
        return self.app.mode in BY_ENGINE

    @property
    def last_events(self) -> tuple[str, ...]:
        return LAST_EVENTS[self.by_engine]

    def emit(self, event: str, data: JsonObject) -> None:
        """An event of the workflow engine; apps that it does not run have none."""
        if self.by_engine:
            self._add(
                {"event": event, "task_id": self.task_id, "workflow_run_id": self.id} | self._talk() | {"data": data}
            )

    def say(self, event: str, **fields: object) -> None:
        """An event of a message: chat-type and completion apps only."""
        run = {"workflow_run_id": self.id} if self.by_engine else {}
        self._add({"event": event, "task_id": self.task_id, **run, **self._talk(), "id": self.message_id, **fields})

    def speak(self, piece: str) -> None:
        """A piece of the answer, in the event that the app's mode has for it."""
        if self.app.mode == "workflow":
            self.emit("text_chunk", {"text": piece, "from_variable_selector": ["llm", "text"]})
            return
        self.answer += piece
        self.say(SPOKEN.get(self.app.mode, "message"), answer=piece)

    def _talk(self) -> JsonObject:
        if self.app.mode == "workflow":
            return {}
        talk = {"conversation_id": self.conversation_id} if self.app.mode != "completion" else {}
        return talk | {"message_id": self.message_id, "created_at": int(self.created_at or 0)}

    def _add(self, event: JsonObject) -> None:
        self.events.append(event)
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

    def usage(self) -> JsonObject:
        """`metadata` of an answer."""
        half = self.tokens // 2
        usage = {"prompt_tokens": self.tokens - half, "completion_tokens": half, "total_tokens": self.tokens}
        return {
            "usage": usage | {"total_price": f"{self.tokens * 2e-6:.7f}", "currency": "USD", "latency": self.elapsed},
            "retriever_resources": [],
        }

    def message(self) -> JsonObject:
        """One item of GET /messages. What was lost stays a question without an answer."""
        done = self.status in ENDED and not self.lost
        status = {"failed": "error", "paused": "paused"}.get(self.status, "normal")
        return {
            "id": self.message_id,
            "conversation_id": self.conversation_id,
            "inputs": self.inputs,
            "query": self.query,
            "answer": self.answer if done and self.status != "failed" else "",
            "status": status,
            "error": self.error if status == "error" else None,
            "message_files": [],
            "feedback": None,
            "retriever_resources": [],
            "agent_thoughts": [],
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
            "query": self.query,
            "conversation_id": self.conversation_id,
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
        mine = (run for run in self.runs if run.app is app and run.form)
        return next((run for run in mine if token == run.form["form_token"] or token in run.closed_forms), None)  # type: ignore[index]

    def talks(self, app: DemoApp, user: str) -> list[Run]:
        """What this user asked this app, newest first."""
        return [run for run in reversed(self.runs) if run.app is app and run.user == user and run.visible]

    def clear(self) -> None:
        for task in self._tasks:
            task.cancel()
        self.runs.clear()
        self.started = 0


def _seconds(moment: float | None) -> int | None:
    return None if moment is None else int(moment)
