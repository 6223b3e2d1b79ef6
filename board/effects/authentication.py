"""What a receiver checks by itself beside the signature: a header, Basic, or a JSON Web Token.

These are the three that n8n's Webhook and Wait nodes know.
"""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

# A token serves for one call; the rest is for clocks that differ.
TOKEN_SECONDS = 300


def auth_headers(auth: Mapping[str, Any] | None, message_id: str, moment: int | None = None) -> dict[str, str]:
    """The headers for a connection's `auth` block. message_id: the webhook-id; it becomes the token's `jti`."""
    auth = auth or {}
    headers = {str(name).lower(): str(value) for name, value in (auth.get("header") or {}).items()}
    if basic := auth.get("basic"):
        pair = f"{basic.get('user', '')}:{basic.get('password', '')}".encode()
        headers["authorization"] = "Basic " + base64.b64encode(pair).decode()
    if token := auth.get("jwt"):
        headers["authorization"] = "Bearer " + _jwt(token, message_id, int(time.time()) if moment is None else moment)
    return headers


def _jwt(block: Mapping[str, Any], message_id: str, moment: int) -> str:
    """A token signed with HMAC-SHA-256 (RFC 7519), made anew for every call."""
    made = {"iss": "ai-task-board", "iat": moment, "exp": moment + TOKEN_SECONDS, "jti": message_id}
    signed = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part({**made, **(block.get('claims') or {})})}"
    signature = hmac.digest(str(block["secret"]).encode(), signed.encode(), "sha256")
    return f"{signed}.{_base64(signature)}"


def _part(content: Mapping[str, Any]) -> str:
    return _base64(json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode())


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
