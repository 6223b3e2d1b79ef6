"""How a receiver can tell that a call is ours: Standard Webhooks headers, and a plain hex signature for n8n."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time


def webhook_id(operation_key: str) -> str:
    """The id that stays the same in every try of one operation, so that a receiver can tell repeats."""
    return "msg_" + hashlib.sha256(operation_key.encode()).hexdigest()[:32]


def secret_bytes(secret: str) -> bytes:
    """`whsec_` + base64 is those bytes; any other text counts as its UTF-8 bytes."""
    return base64.b64decode(secret[6:]) if secret.startswith("whsec_") else secret.encode()


def headers(operation_key: str, body: bytes, secret: str, moment: int | None = None) -> dict[str, str]:
    """The headers of one try. moment: seconds since 1970, now by default; fresh in every try, as is the signature.

    Signed is `id.timestamp.body` (Standard Webhooks); `X-Board-Signature` is the HMAC of the raw body alone with the
    secret's text as written, which n8n's Crypto node can check.
    """
    message_id = webhook_id(operation_key)
    timestamp = str(int(time.time()) if moment is None else moment)
    signed = b".".join([message_id.encode(), timestamp.encode(), body])
    signature = base64.b64encode(hmac.digest(secret_bytes(secret), signed, "sha256")).decode()
    return {
        "content-type": "application/json",
        "user-agent": "ai-task-board",
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
        "x-board-signature": "sha256=" + hmac.digest(secret.encode(), body, "sha256").hex(),
        "idempotency-key": message_id,
    }
