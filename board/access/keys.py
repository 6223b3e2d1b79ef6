"""API keys for programs: made with scopes, shown once, found by their hash, revoked for good."""

from __future__ import annotations

import hmac
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, update

from board.access.errors import AccessError
from board.access.models import api_keys
from board.access.rights import Actor, Scope, key_actor
from board.access.tokens import digest, new_token
from board.db.clock import now
from board.db.engine import after_commit
from board.db.insert import insert_once
from board.rates import parse_rate

PREFIX = "bk_"  # lets people, and scanners for leaked secrets, see what it is
BOOTSTRAP = "bootstrap"  # the name of the key in BOARD_BOOTSTRAP_API_KEY; no stored key may take it
# For each new task so many entries of an index are counted at most, which takes some ten milliseconds.
MOST_WAITING = 20_000
_HINT_LENGTH = 8  # the prefix and five characters: tells keys apart, 226 bits remain secret
# A name stands in histories and in `reviewers: [key:NAME]`, and in lists with commas.
_NAME = re.compile(r"[\w.-]+( [\w.-]+)*")
_NAME_LENGTH = 120


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it is shown: never the secret, only its first characters."""

    id: int
    name: str
    hint: str
    scopes: tuple[str, ...]
    limits: Mapping[str, Any] | None
    created_at: datetime
    revoked_at: datetime | None


def create(
    tx: Connection, name: str, scopes: Sequence[str], rate: str | None = None, max_waiting: int | None = None
) -> str:
    """A new key; the secret is returned and never shown again. AccessError for a bad or taken name and bad scopes.

    rate: how many new tasks it may put in, such as 60/min; None: as BOARD_INTAKE_RATE says. max_waiting: how many of
    its tasks may wait at the same time; None: any number.
    """
    name = _checked_name(name)
    secret = PREFIX + new_token()
    row = {
        "name": name,
        "secret_hash": digest(secret),
        "hint": secret[:_HINT_LENGTH],
        "scopes": _checked_scopes(scopes),
        "limits": _checked_limits(rate, max_waiting),
        "created_at": now(),
    }
    if insert_once(tx, api_keys, "name", row) is None:
        raise AccessError(
            "A key named “{name}” exists already, or existed; take another name.",
            code="name_taken",
            field="name",
            name=name,
        )
    return secret


def find(connection: Connection, secret: str, bootstrap: str) -> Actor | None:
    """Who holds this secret; None for an unknown or revoked key. bootstrap: BOARD_BOOTSTRAP_API_KEY, "" for none."""
    if bootstrap and hmac.compare_digest(digest(secret), digest(bootstrap)):
        return key_actor(BOOTSTRAP, [Scope.ADMIN])
    row = connection.execute(
        select(api_keys.c.name, api_keys.c.scopes, api_keys.c.limits).where(
            api_keys.c.secret_hash == digest(secret), api_keys.c.revoked_at.is_(None)
        )
    ).one_or_none()
    return None if row is None else key_actor(row.name, row.scopes, **(row.limits or {}))


class _Changes:
    """How often keys were taken away or changed by this process."""

    number = 0

    @classmethod
    def count(cls) -> None:
        cls.number += 1


def changes() -> int:
    """Grows with every commit of this process after which a key may do less: what was known of keys is void."""
    return _Changes.number


def list_keys(connection: Connection) -> list[Key]:
    """All keys by name, revoked ones too."""
    columns = [api_keys.c[field.name] for field in fields(Key)]
    rows = connection.execute(select(*columns).order_by(api_keys.c.name)).mappings()
    return [Key(**{**row, "scopes": tuple(row["scopes"])}) for row in rows]


def revoke(tx: Connection, name: str) -> None:
    """The key stops working, in other processes within board.access.known_keys.KNOWN_SECONDS, and stays listed.

    Revoking twice changes nothing. AccessError for no such key."""
    known = _known(tx, name)
    tx.execute(update(api_keys).where(api_keys.c.id == known, api_keys.c.revoked_at.is_(None)).values(revoked_at=now()))
    after_commit(tx, _Changes.count)


def set_limits(tx: Connection, name: str, rate: str | None, max_waiting: int | None) -> None:
    """Other limits, or none of its own, from the next request on. AccessError for no such key and a bad limit."""
    limits = _checked_limits(rate, max_waiting)
    tx.execute(update(api_keys).where(api_keys.c.id == _known(tx, name)).values(limits=limits))
    after_commit(tx, _Changes.count)


def _known(connection: Connection, name: str) -> int:
    known: int | None = None
    if _NAME.fullmatch(name):
        known = connection.execute(select(api_keys.c.id).where(api_keys.c.name == name)).scalar_one_or_none()
    if known is None:
        raise AccessError("There is no key named “{name}”.", code="not_found", field="name", name=name)
    return known


def bearer(authorization: str | None, x_api_key: str | None) -> str | None:
    """The key of a request, from its headers Authorization and X-API-Key; None where neither holds one.

    The scheme's case does not count, and it may be repeated: Dify sends `Bearer Bearer KEY` when it uses a tool again.
    """
    words = (authorization or "").split()
    if words and words[0].lower() == "bearer":
        while words and words[0].lower() == "bearer":
            del words[0]
        if words:
            return " ".join(words)
    return (x_api_key or "").strip() or None


def _checked_name(name: str) -> str:
    name = unicodedata.normalize("NFC", name).strip()
    if len(name) > _NAME_LENGTH or not _NAME.fullmatch(name):
        raise AccessError(
            "A key's name is 1 to {most} letters, digits, dots, hyphens, underscores or single spaces.",
            code="bad_name",
            field="name",
            most=_NAME_LENGTH,
        )
    if name.lower() == BOOTSTRAP:
        raise AccessError(
            "The name “{name}” is kept for the key in BOARD_BOOTSTRAP_API_KEY; take another name.",
            code="name_taken",
            field="name",
            name=name,
        )
    return name


def _checked_limits(rate: str | None, max_waiting: int | None) -> dict[str, Any] | None:
    limits: dict[str, Any] = {}
    if rate is not None:
        try:
            parse_rate(rate)
        except ValueError as error:
            raise AccessError("{problem}.", code="bad_rate", field="limits.rate", problem=str(error)) from error
        limits["rate"] = rate.strip()
    if max_waiting is not None:
        if not 1 <= max_waiting <= MOST_WAITING:
            raise AccessError(
                "max_waiting is a number from 1 to {most}.",
                code="bad_bound",
                field="limits.max_waiting",
                most=f"{MOST_WAITING:,}",
            )
        limits["max_waiting"] = max_waiting
    return limits or None


def _checked_scopes(scopes: Sequence[str]) -> list[str]:
    wanted = {scope.strip() for scope in scopes if scope.strip()}
    allowed = [scope.value for scope in Scope]
    unknown = sorted(wanted.difference(allowed))
    if unknown or not wanted:
        raise AccessError(
            "“{scope}” is not a scope; the scopes are {allowed}."
            if unknown
            else "A key needs at least one scope; the scopes are {allowed}.",
            code="bad_scope",
            field="scopes",
            scope=", ".join(unknown),
            allowed=", ".join(allowed),
        )
    return [scope for scope in allowed if scope in wanted]
