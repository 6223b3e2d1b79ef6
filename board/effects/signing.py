"""How a receiver can tell that a call is ours: Standard Webhooks headers, and a plain hex signature for n8n."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Sequence

MOST = 2  # secrets at once: the new and the old. A third would mean that the last change was never finished


def webhook_id(operation_key: str) -> str:
    """The id that stays the same in every try of one operation, so that a receiver can tell repeats."""
    return "msg_" + hashlib.sha256(operation_key.encode()).hexdigest()[:32]


def secrets_of(given: str | Sequence[str]) -> list[str]:
    """The secrets that sign, newest first: a list, one text, or `whsec_new,whsec_old`.

    Base64 has no comma, so a text that begins with whsec_ and holds one can only be several; any other text may hold
    commas and is one secret.
    """
    if not isinstance(given, str):
        return list(given)
    return [part.strip() for part in given.split(",")] if given.startswith("whsec_") else [given]


def problem_of(given: str | Sequence[str]) -> str | None:
    """Why what was given cannot sign, as a plain sentence that does not repeat it."""
    secrets = secrets_of(given)
    if not 1 <= len(secrets) <= MOST:
        return f"holds {len(secrets)} secrets; give one, or the new one and the old while it is being changed"
    for secret in secrets:
        if not secret.removeprefix("whsec_"):
            return "is empty; leave it out to use the board's own"
        try:
            secret_bytes(secret)
        except ValueError:
            return "begins with whsec_, but what follows is not base64"
    return None


def secret_bytes(secret: str) -> bytes:
    """`whsec_` + base64 is those bytes; any other text counts as its UTF-8 bytes."""
    return base64.b64decode(secret[6:], validate=True) if secret.startswith("whsec_") else secret.encode()


def headers(operation_key: str, body: bytes, secrets: Sequence[str], moment: int | None = None) -> dict[str, str]:
    """The headers of one try. moment: seconds since 1970, now by default; fresh in every try, as is the signature.

    Signed is `id.timestamp.body` (Standard Webhooks); `X-Board-Signature` is the HMAC of the raw body alone with the
    secret's text as written, which n8n's Crypto node can check. While a secret is being changed both stand in both
    headers, separated by a space.
    """
    message_id = webhook_id(operation_key)
    timestamp = str(int(time.time()) if moment is None else moment)
    return {
        "content-type": "application/json",
        "user-agent": "ai-task-board",
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(standard(it, message_id, timestamp, body) for it in secrets),
        "x-board-signature": " ".join("sha256=" + hmac.digest(it.encode(), body, "sha256").hex() for it in secrets),
        "idempotency-key": message_id,
    }


def standard(secret: str, message_id: str, timestamp: str, body: bytes) -> str:
    """One signature of Standard Webhooks, with its version."""
    signed = b".".join([message_id.encode(), timestamp.encode(), body])
    return "v1," + base64.b64encode(hmac.digest(secret_bytes(secret), signed, "sha256")).decode()
