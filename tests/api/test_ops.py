"""/ops and /metrics: breakers, limits in use, and what types spend today."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import httpx2
from sqlalchemy import update

from board.db.clock import read_now
from board.effects import breaker
from board.effects.models import breakers
from board.queue import spending
from board.queue.spending import Spent
from tests.api.conftest import Api

CONNECTIONS = [
    {
        "name": "dify",
        "kind": "dify",
        "url": "https://dify.example.org/v1",
        "key": "app-0123456789",
        "limits": {"rate": "60/min"},
    },
    {"name": "hook", "kind": "webhook", "url": "https://n8n.example.org/x"},
]
TYPE = {
    "name": "lead",
    "handler": {"use": "dify.workflow", "connection": "dify"},
    "limits": {"concurrency": 4, "tokens_per_day": 5000},
    "require_id": False,
}


def set_up(api: Api) -> None:
    answer = api.post("/types", json={"types": [TYPE], "connections": CONNECTIONS})
    assert answer.status_code == 200, answer.text


def shut(api: Api, *, over: bool = False) -> None:
    with api.board.db.write() as tx:
        for _ in range(breaker.FAILURES):
            breaker.failed(tx, "dify", "Nobody answers.")
        if over:
            tx.execute(update(breakers).values(until=read_now(tx) - timedelta(seconds=1)))


def named(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    [found] = [row for row in rows if row["name"] == name]
    return found


def test_what_is_shown_of_connections_and_types(api: Api) -> None:
    set_up(api)
    shut(api)
    with api.board.db.write() as tx:
        spending.add(tx, [Spent("lead", 12, 4200)], "UTC")
    ops = api.get("/ops").json()
    dify = named(ops["connections"], "dify")
    assert (dify["breaker"]["state"], dify["breaker"]["failures"]) == ("open", breaker.FAILURES)
    assert (dify["running"], dify["held"], dify["rate"]) == (0, 0, {"limit": "60/min", "free": 3})
    assert (dify["concurrency"], dify["per_day"]) == (None, None)
    lead = named(ops["types"], "lead")
    assert (lead["calls_today"], lead["tokens_today"], lead["tokens_per_day"]) == (12, 4200, 5000)
    assert lead["concurrency"] == {"limit": 4, "running": 0}
    assert ops["resets_at"] > ops["at"]
    assert "app-0123456789" not in str(ops)


def test_metrics_are_read_with_a_key(one_api: Api) -> None:
    set_up(one_api)
    shut(one_api, over=True)
    text = one_api.client.get(f"{one_api.url}/metrics").text
    assert 'board_connection_breaker{connection="dify",state="half_open"} 1' in text
    assert 'board_connection_breaker{connection="dify",state="open"} 0' in text
    assert 'board_limit_concurrency{type="lead"} 4' in text
    assert 'board_type_tokens_per_day{type="lead"} 5000' in text
    assert 'board_queue_ready{lane="P0"} 0' in text
    line = re.compile(r'# (HELP|TYPE) .+|[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+')
    assert httpx2.get(f"{one_api.url}/metrics", trust_env=False).status_code == 401
    assert one_api.as_key("submit").client.get(f"{one_api.url}/metrics").status_code == 403
    assert [it for it in text.splitlines() if not line.fullmatch(it)] == []
