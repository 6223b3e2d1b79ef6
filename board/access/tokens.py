"""Secrets that are shown once and kept only as a hash: keys, sessions, links."""

from __future__ import annotations

import hashlib
import secrets


def new_token() -> str:
    """256 random bits in 43 URL-safe characters: cannot be guessed, so a plain hash protects it at rest."""
    return secrets.token_urlsafe(32)


def digest(token: str) -> str:
    """What the database keeps of a token: SHA-256, 64 hexadecimal characters. Takes any text a stranger may send."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
