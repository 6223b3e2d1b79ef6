"""Passwords: what counts as one, and how it is kept (Argon2id)."""

from __future__ import annotations

import threading
import unicodedata
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from board.access.errors import AccessError

MIN_LENGTH = 10  # characters; length is what protects, so no rule asks for digits or signs
MAX_LENGTH = 1000  # characters; far above any password manager's, and keeps a stranger from making us hash megabytes
# RFC 9106's second recommendation (3 passes, 64 MiB, 4 lanes), the library's default: about 0.1 s.
_hasher = PasswordHasher()
# Each hash takes 64 MiB; strangers who sign in many times at once must not fill the memory.
_at_once = threading.BoundedSemaphore(4)


def hash_password(password: str) -> str:
    """The Argon2id hash to store. AccessError when the password is too short or too long."""
    password = _normal(password)
    if len(password) < MIN_LENGTH:
        raise AccessError(
            "The password is too short; use at least {least} characters.",
            code="bad_password",
            field="password",
            least=MIN_LENGTH,
        )
    if len(password) > MAX_LENGTH:
        raise AccessError(
            "The password is too long; use at most {most} characters.",
            code="bad_password",
            field="password",
            most=MAX_LENGTH,
        )
    with _at_once:
        return _hasher.hash(_bytes(password))


def matches(stored: str | None, password: str) -> bool:
    """Whether the password belongs to the stored hash. Without one it takes as long, and the answer is no."""
    password = _normal(password[: MAX_LENGTH + 1])
    with _at_once:
        try:
            return _hasher.verify(stored or _decoy(), _bytes(password)) and stored is not None
        except (VerificationError, InvalidHashError):
            return False


def is_outdated(stored: str) -> bool:
    """Whether the hash was made with weaker parameters than today's."""
    return _hasher.check_needs_rehash(stored)


@cache
def _decoy() -> str:
    return _hasher.hash("nobody has this password")


def _normal(password: str) -> str:
    """One form for letters that keyboards and systems encode differently (NIST SP 800-63B, 5.1.1.2)."""
    return unicodedata.normalize("NFKC", password)


def _bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")  # JSON may hold half a character: wrong, but no crash
