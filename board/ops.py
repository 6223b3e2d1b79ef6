"""How the work stands toward other systems now: what `GET /ops`, its page, the metrics and the doctor show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import ValidationError
from sqlalchemy import Connection

from board.catalogue.spec import TypeSpec
from board.catalogue.store import Catalogue, UnknownType, list_connections, list_types
from board.db.clock import read_now
from board.effects import breaker
from board.queue import held, spending
from board.queue.gate import Gate
from board.queue.limits import connection_scope, type_scope
from board.queue.spending import Spent
from board.queue.usage import Now
from board.tasks.states import Phase
from board.tasks.view import time

_OF_LIMIT = ("concurrency", "rate", "per_day", "opens_at")


def standing(connection: Connection, catalogue: Catalogue, gate: Gate, zone: str) -> dict[str, Any]:
    """Every connection with its breaker and what of its limits is used, every type with what it has spent today."""
    now = Now(read_now(connection), ZoneInfo(zone))
    limits = {it["limit"]: it for it in gate.shown(connection)}
    types = list(_types(connection))
    return {
        "connections": _connections(connection, catalogue, limits, now),
        "types": [_type(spec, limits, spent) for spec, spent in _with_spending(connection, types, now)],
        "day": now.day,
        "resets_at": time(now.midnight),
        "at": time(now.moment),
    }


def _connections(
    connection: Connection, catalogue: Catalogue, limits: Mapping[str, Any], now: Now
) -> list[dict[str, Any]]:
    failing = {row["connection"]: row for row in breaker.read(connection)}
    running = _running(connection, catalogue)
    return [
        {
            "name": row["name"],
            "kind": row["kind"],
            "breaker": breaker.document(failing.get(row["name"]), now.moment),
            "running": running[row["name"]],
            **_limit(limits.get(connection_scope(row["name"]))),
        }
        for row in list_connections(connection)
    ]


def _limit(limit: Mapping[str, Any] | None) -> dict[str, Any]:
    found = limit or {}
    return {"held": found.get("held", 0), **{name: found.get(name) for name in _OF_LIMIT}}


def _running(connection: Connection, catalogue: Catalogue) -> Counter[str]:
    """How many attempts use each connection now: what runs is as many as there are slots."""
    counted: Counter[str] = Counter()
    for row in held.running(connection):
        try:
            spec = catalogue.version(connection, row["type"], row["type_version"]).spec
        except (UnknownType, ValidationError):  # removed or written by hand; the worker says so
            continue
        block = spec.action if row["phase"] == Phase.ACT else spec.handler
        if block is not None and block.connection:
            counted[block.connection] += 1
    return counted


def _types(connection: Connection) -> Iterator[TypeSpec]:
    for row in list_types(connection):
        try:
            yield TypeSpec.model_validate(row["spec"])
        except ValidationError:  # stored by another release; `board doctor` names it
            continue


def _with_spending(connection: Connection, types: list[TypeSpec], now: Now) -> Iterator[tuple[TypeSpec, Spent]]:
    spent = spending.today(connection, now)
    for spec in types:
        yield spec, spent.get(spec.name, Spent(spec.name))


def _type(spec: TypeSpec, limits: Mapping[str, Any], spent: Spent) -> dict[str, Any]:
    return {
        "name": spec.name,
        "title": spec.title if isinstance(spec.title, str) or spec.title is None else spec.title.model_dump(),
        "connection": spec.handler.connection,
        "calls_today": spent.calls,
        "tokens_today": spent.tokens,
        "tokens_per_day": spec.limits.tokens_per_day,
        **_limit(limits.get(type_scope(spec.name))),
    }
