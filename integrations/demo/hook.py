"""A webhook receiver that the samples' actions call: it keeps what it got and tells a repeat by its webhook-id."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from integrations.demo.runs import KEPT
from integrations.demo.standin import of
from integrations.demo.wire import json_answer

SECRET = "whsec_" + base64.b64encode(b"demo stand-in, known to everyone").decode()  # the samples' connection has it too


async def receive(request: Request) -> Response:
    """POST /hook/{anything}: 200 always; `repeated` tells that this webhook-id came before."""
    standin = of(request)
    raw = await request.body()
    webhook_id = request.headers.get("webhook-id", "")
    try:
        body = json.loads(raw)
    except ValueError:
        body = raw.decode(errors="replace")
    repeated = bool(webhook_id) and any(call["webhook_id"] == webhook_id for call in standin.hooks)
    standin.hooks.append(
        {
            "at": time.time(),
            "path": request.path_params["path"],
            "webhook_id": webhook_id,
            "idempotency_key": request.headers.get("idempotency-key", ""),
            "signature_valid": signature_valid(request.headers, raw) if webhook_id else False,
            "repeated": repeated,
            "body": body,
        }
    )
    del standin.hooks[:-KEPT]
    return json_answer({"received": True, "repeated": repeated, "by": "Demo stand-in"})


async def received(request: Request) -> Response:
    """GET /hook/received: every call, oldest first; `distinct` counts a repeated webhook-id once."""
    hooks = of(request).hooks
    distinct = sum(1 for call in hooks if not call["repeated"])
    return json_answer({"count": len(hooks), "distinct": distinct, "data": hooks})


def signature_valid(headers: Mapping[str, str], raw: bytes) -> bool:
    """Whether one of the Standard Webhooks signatures fits the body, made with SECRET."""
    signed = f"{headers.get('webhook-id', '')}.{headers.get('webhook-timestamp', '')}.".encode() + raw
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    expected = "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    return any(hmac.compare_digest(expected, one) for one in headers.get("webhook-signature", "").split())


ROUTES = [
    Route("/received", received),
    Route("/{path:path}", receive, methods=["POST"]),
]
