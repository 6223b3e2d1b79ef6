"""Where an address leads in truth: a caller may name itself by a host that only it can reach (BOARD_CALLBACK_REWRITE).

An n8n in a container says `http://localhost:5678/…` in its resume addresses; the board finds it under another name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from board.effects.guard import host_and_port, written
from board.ports import Refused

Origin = tuple[str, str, int]  # scheme, host, port


@dataclass(frozen=True, slots=True)
class Rewrite:
    """rules: the origin that callers write, and the address that takes its place, without a slash at the end."""

    rules: tuple[tuple[Origin, str], ...] = ()

    @staticmethod
    def read(items: Sequence[str]) -> Rewrite:
        """From `http://localhost:5678=http://n8n:5678`, each rule. Raises ValueError, naming what is wrong."""
        rules: list[tuple[Origin, str]] = []
        for item in items:
            seen, equals, real = (part.strip() for part in item.partition("="))
            if not equals:
                raise ValueError(f"“{item}” has no =; write the address that callers name, =, and the one to call")
            origin = _origin(seen, path=False)
            if any(origin == other for other, _ in rules):
                raise ValueError(f"“{seen}” stands twice")
            _origin(real, path=True)
            rules.append((origin, real.rstrip("/")))
        return Rewrite(tuple(rules))

    def __call__(self, url: str) -> str:
        """The address to call; the same one where no rule is about it, or it is none at all."""
        if not self.rules:
            return url
        try:
            host, port = host_and_port(url)
        except Refused:
            return url
        parts = urlsplit(url)
        for origin, real in self.rules:
            if origin == (parts.scheme, written(host), port):
                return real + (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return url

    @property
    def reached(self) -> list[str]:
        """`host:port` of what is called instead: whoever sets a rule has allowed them by that."""
        ends = (host_and_port(real) for _, real in self.rules)
        return [f"{written(host)}:{port}" for host, port in ends]


def _origin(text: str, *, path: bool) -> Origin:
    try:
        host, port = host_and_port(text)
    except Refused as error:
        raise ValueError(f"“{text}” cannot be used: {error}") from error
    parts = urlsplit(text)
    if parts.query or parts.fragment or not (path or parts.path in ("", "/")):
        raise ValueError(f"“{text}” must end after the " + ("path" if path else "host or port"))
    return parts.scheme, written(host), port
