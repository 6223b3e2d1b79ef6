"""Addresses as people may see them, and as the outbox sorts them."""

from __future__ import annotations

from urllib.parse import urlsplit

from board.effects.guard import host_and_port, written


def masked(url: str) -> str:
    """An address for people: resume addresses carry their secret in the query, so that is left out."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path or '/'}" + (
        "?…" if parts.query else ""
    )


def same_server(one: str, other: str) -> bool:
    """Whether two addresses have the same scheme, host and port. Raises Refused for what is no address."""
    (host, port), (other_host, other_port) = host_and_port(one), host_and_port(other)
    same = (written(host), port) == (written(other_host), other_port)
    return same and urlsplit(one).scheme.lower() == urlsplit(other).scheme.lower()


def receiver(url: str) -> str:
    """Scheme, host and port, with the slash after it: whom one call may hold up."""
    return "/".join(masked(url).split("/", 3)[:3]) + "/"
