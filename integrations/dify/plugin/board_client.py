"""Calls to the board: the same flat endpoints that custom tools use, with the arguments as Dify's form gives them.

Only the standard library is needed. The daemon calls out directly, so private addresses and every refusal are seen.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from typing import Any
from urllib.parse import urlsplit

# Seconds: a call with wait_seconds takes 50 at most.
TIMEOUT = 60
USEFUL = {"submit", "read", "work", "review", "admin"}


class BoardError(Exception):
    """The board refused, or could not be reached. The text is for a person or a model."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would send the key to an address that nobody has named."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


# Without the proxies of the environment: the board is often in the same network.
_OPENER = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({}))


def answer(tool: Any, name: str, parameters: Mapping[str, Any]) -> Generator[Any, None, None]:
    """What a tool gives back: the board's answer as JSON, and its message as text. Raises BoardError.

    tool: a dify_plugin.Tool. What was left empty is not sent.
    """
    given = {key: value for key, value in parameters.items() if value is not None and value != ""}
    body = _request(tool.runtime.credentials, "POST", f"/integrations/dify/{name}", given)
    yield tool.create_json_message(body)
    yield tool.create_text_message(str(body.get("message", "")))


def check(credentials: Mapping[str, Any]) -> None:
    """Ask the board who the key is. Raises BoardError, also for a key that may do nothing here."""
    scopes = set(_request(credentials, "GET", "/api/v1/me").get("scopes") or ())
    if not scopes & USEFUL:
        raise BoardError("The board knows this key, but the key has no scope that the tools could use.")


def _request(credentials: Mapping[str, Any], method: str, path: str, body: Any = None) -> dict[str, Any]:
    base = str(credentials.get("board_url") or "").strip().rstrip("/")
    key = str(credentials.get("api_key") or "").strip()
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise BoardError("The address of the board must be a full one, such as https://board.example.org.")
    if not key or not key.isascii() or not key.isprintable():
        raise BoardError("The API key of the board is missing, or holds characters that no key has.")
    request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
        base + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"X-API-Key": key, "Content-Type": "application/json", "Accept": "application/json"},
        method=method,
    )
    try:
        with _OPENER.open(request, timeout=TIMEOUT) as response:
            return _object(response.read(), response.status)
    except urllib.error.HTTPError as error:
        with error:
            raise BoardError(_reason(error)) from error
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "reason", None) or error
        raise BoardError(f"The board at {base} could not be reached: {why}.") from error


def _reason(error: urllib.error.HTTPError) -> str:
    if 300 <= error.code < 400:
        return f"The board's address leads on to {error.headers.get('Location')}; give that address instead."
    try:
        return str(_object(error.read(), error.code)["message"])
    except (BoardError, KeyError, OSError):
        return f"The board answered with status {error.code}."


def _object(raw: bytes, status: int) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BoardError(f"At this address answers something else than the board (status {status}).")
    return found
