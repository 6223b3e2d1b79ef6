"""One attempt of `dify.workflow` that asks again soon, and what the stand-in's samples are."""

from __future__ import annotations

import socket
from typing import Any

from integrations.dify.follow import Pace
from integrations.dify.workflow import Workflow
from tests.integrations.dify.doubles import NotedJob

GOOD = {"decision": "approve", "score": 0.82, "reason": "清晰，尺寸合规 ✅"}
LABELLED = {"type": "object", "required": ["label"], "properties": {"label": {"type": "string"}}}


def handler() -> Workflow:
    return Workflow(Pace(first=0.05, cap=0.2))


async def run(job: NotedJob) -> Any:
    return await handler().run(job)


def free_port() -> int:
    with socket.socket() as probing:
        probing.bind(("127.0.0.1", 0))
        port: int = probing.getsockname()[1]
        return port
