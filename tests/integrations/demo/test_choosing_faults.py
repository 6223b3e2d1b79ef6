"""How a fault is chosen: by the queue, by the inputs, and what is refused."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from integrations.demo import dify_app
from integrations.demo.faults import FAULTS
from tests.integrations.demo.conftest import Client, last

pytestmark = pytest.mark.asyncio(loop_scope="module")  # the server lives in that loop


async def test_every_fault_is_documented() -> None:
    text = inspect.getdoc(dify_app) or ""
    assert [name for name in FAULTS if name != "none" and not re.search(rf"\b{name}\b", text)] == []


async def test_a_queued_fault_is_used_up(dify: Client) -> None:
    await dify.http.post("/_standin/faults", json={"faults": [{"fault": "failed", "times": 2}, "stopped"]})
    ends = [last(await dify.streamed())["status"] for _ in range(4)]
    assert ends == ["failed", "failed", "stopped", "succeeded"]


async def test_a_queued_fault_waits_for_its_match(dify: Client) -> None:
    await dify.http.post("/_standin/faults", json={"faults": [{"fault": "failed", "match": "board:9:"}]})
    assert last(await dify.streamed())["status"] == "succeeded"
    assert last(await dify.streamed(user="board:9:1"))["status"] == "failed"


async def test_a_marker_in_the_text(dify: Client) -> None:
    text = "Please quote 10 boxes [[fault:failed times=1]]"
    assert last(await dify.streamed(inputs={"text": text}))["status"] == "failed"
    second = last(await dify.streamed(inputs={"text": text}))
    assert second["status"] == "succeeded"
    assert "[[" not in second["outputs"]["summary"]


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({"faults": ["nonsense"]}, "nonsense"),
        ({"faults": [{"fault": "slow", "speed": 3}]}, "speed"),
        ({"faults": [{"fault": "slow", "times": 0}]}, "times"),
        ({"faults": [{"fault": "http", "on": "moon"}]}, "on must be"),
        ({"faults": [{"fault": "raw", "raw": "§"}]}, "base64"),
        ({"pace": {"speed": 1}}, "pace"),
        ({"colour": 1}, "colour"),
    ],
)
async def test_bad_requests_for_faults_name_the_field(dify: Client, body: dict[str, Any], part: str) -> None:
    answer = await dify.http.post("/_standin/faults", json=body)
    assert answer.status_code == 400
    assert part in answer.json()["message"]


async def test_a_bad_fault_in_the_inputs_is_refused(dify: Client) -> None:
    answer = await dify.start("nonsense")
    assert answer.status_code == 400
    assert "nonsense" in answer.json()["message"]


async def test_reset_and_pace(dify: Client) -> None:
    await dify.streamed()
    await dify.http.post("/_standin/faults", json={"faults": ["failed"]})
    answer = await dify.http.post("/_standin/faults", json={"reset": True, "pace": {"run": 0.01}})
    assert answer.json()["queue"] == []
    seen = (await dify.http.get("/_standin/runs")).json()
    assert (seen["started"], seen["runs"], len(seen["requests"])) == (0, [], 0)
    assert dify.memory.pace.run == 0.01


async def test_a_match_looks_at_paths_of_other_calls(dify: Client) -> None:
    fault = {"fault": "http", "http_status": 502, "on": "logs", "match": "board:2:1"}
    await dify.http.post("/_standin/faults", json={"faults": [fault]})
    assert (await dify.http.get("/v1/workflows/logs")).status_code == 200
    query = {"created_by_end_user_session_id": "board:2:1"}
    assert (await dify.http.get("/v1/workflows/logs", params=query)).status_code == 502
