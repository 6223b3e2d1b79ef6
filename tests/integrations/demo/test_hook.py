"""The webhook receiver keeps what it got and tells a repeat."""

from __future__ import annotations

import base64
import hmac
from typing import Any

import pytest

from integrations.demo.hook import SECRET
from tests.integrations.demo.conftest import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")  # the server lives in that loop


def signed(webhook_id: str, body: bytes, secret: str = SECRET) -> dict[str, str]:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.digest(key, f"{webhook_id}.1796000000.".encode() + body, "sha256")
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": "1796000000",
        "webhook-signature": f"v1,AAAA v1,{base64.b64encode(mac).decode()}",
        "idempotency-key": webhook_id,
    }


async def post(dify: Client, headers: dict[str, str], body: bytes = b'{"event": "task.action"}') -> dict[str, Any]:
    answer = await dify.http.post("/hook/publish", content=body, headers=headers)
    assert answer.status_code == 200
    said: dict[str, Any] = answer.json()
    return said


async def test_a_repeated_webhook_id_is_noticed(dify: Client) -> None:
    headers = signed("msg_1", b'{"event": "task.action"}')
    assert [(await post(dify, headers))["repeated"] for _ in range(2)] == [False, True]
    assert (await post(dify, signed("msg_2", b"{}"), b"{}"))["repeated"] is False
    got = (await dify.http.get("/hook/received")).json()
    assert (got["count"], got["distinct"]) == (3, 2)
    assert got["data"][0]["body"] == {"event": "task.action"}
    assert got["data"][0]["path"] == "publish"
    assert got["data"][0]["idempotency_key"] == "msg_1"


async def test_signatures_are_checked_and_noted(dify: Client) -> None:
    body = b'{"a": 1}'
    await post(dify, signed("msg_1", body), body)
    await post(dify, signed("msg_2", body, "whsec_" + base64.b64encode(b"another").decode()), body)
    await post(dify, {}, b"no json")
    data = (await dify.http.get("/hook/received")).json()["data"]
    assert [call["signature_valid"] for call in data] == [True, False, False]
    assert data[2]["body"] == "no json"
