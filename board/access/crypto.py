"""Secrets of other systems at rest: encrypted with the board's own key, which never enters the database."""

from __future__ import annotations

import base64
import hashlib
import secrets

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from board.access.errors import WrongKey


class Vault:
    """Encrypts with the first key, decrypts with any of them (Fernet: AES-128-CBC with HMAC-SHA-256)."""

    def __init__(self, text: str) -> None:
        """text: one key of 32 bytes in URL-safe base64, or `new,old` while rotating. ValueError for anything else."""
        keys = [part.strip() for part in text.split(",") if part.strip()]
        if not keys:
            raise ValueError("an encryption key is needed")
        self._first = Fernet(keys[0])
        self._all = MultiFernet([Fernet(key) for key in keys])
        # A fingerprint must not help to find the key: 32 random bytes cannot be searched for, whatever the hash.
        self.fingerprints = tuple(_fingerprint(base64.urlsafe_b64decode(key)) for key in keys)

    @property
    def fingerprint(self) -> str:
        """Names the first key without giving it away: 16 hexadecimal characters."""
        return self.fingerprints[0]

    def encrypt(self, text: str) -> str:
        return self._all.encrypt(text.encode()).decode("ascii")

    def decrypt(self, token: str) -> str:
        """The text behind what `encrypt` gave. WrongKey when none of the keys made it, or it was changed."""
        try:
            return self._all.decrypt(token.encode()).decode()
        except InvalidToken:
            raise WrongKey(
                "A stored secret cannot be read with this encryption key. Start the board with the key it was stored "
                "with (BOARD_ENCRYPTION_KEY may hold `new,old`), or enter the secret again."
            ) from None

    def renew(self, token: str) -> str:
        """The same secret under the first key; the token itself when it is so already. WrongKey as for `decrypt`."""
        try:
            self._first.decrypt(token.encode())
        except InvalidToken:
            return self.encrypt(self.decrypt(token))
        return token

    def __repr__(self) -> str:
        return f"Vault({self.fingerprint})"


def new_key() -> str:
    """A fresh encryption key in the form of BOARD_ENCRYPTION_KEY."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode("ascii")


def _fingerprint(key: bytes) -> str:
    return hashlib.sha256(b"board encryption key\0" + key).hexdigest()[:16]
