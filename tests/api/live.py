"""Following a task live."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from board.ports import Job, Outcome, Success
from tests.api.conftest import Api
from tests.rig.events import stream

LIVE = {"Accept": "text/event-stream"}
PROBE = {"name": "probe", "handler": {"use": "probe"}, "require_id": False, "retry": {"base": "20ms", "cap": "50ms"}}


async def nothing(job: Job) -> Outcome:
    return Success(result={"n": job.payload.get("n")})


def post(api: Api, body: dict[str, Any], **headers: str) -> Any:
    return stream(api.client, "POST", "/tasks", json=body, headers=LIVE | headers)


def follow(api: Api, task_id: str, **headers: str) -> Any:
    return stream(api.client, "GET", f"/tasks/{task_id}/stream", headers=headers)


def until(holds: Callable[[], bool], seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)
