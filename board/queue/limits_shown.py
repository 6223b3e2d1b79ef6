"""What limits there are, what of them is used, and how much they keep back: as GET /queue shows it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import Connection, func, select

from board.catalogue.fields import CallLimits
from board.queue import usage
from board.queue.admission import running_by_scope
from board.queue.limits import Limit, Rules, type_scope
from board.queue.usage import Now, Usage
from board.rates import whole
from board.tasks.models import HELD, tasks
from board.tasks.view import time


def shown(connection: Connection, rules: Rules, now: Now) -> list[dict[str, Any]]:
    """Every limit of a type or connection, by name. The keys of a type are told together: there may be any number."""
    rules.refresh(connection)
    limits = {limit.scope: limit for limit in rules.shared()}
    keyed = {type_scope(name): number for name, number in rules.keyed().items()}
    running = running_by_scope(connection, rules)
    held = held_by_scope(connection)
    used = usage.read(connection, limits.keys())
    found = []
    for scope in sorted(limits.keys() | keyed.keys()):
        written = rules.call_limits(scope)
        assert written is not None
        one: dict[str, Any] = {"limit": scope, "held": held[scope]}
        if scope in limits:
            one |= _shared(limits[scope], written, used[scope], running[scope], now)
        if scope in keyed:
            one["per_key"] = _keys(scope, keyed[scope], running, held)
        found.append(one)
    return found


def held_by_scope(connection: Connection) -> Counter[str]:
    query = select(tasks.c.held_by, func.count()).where(HELD).group_by(tasks.c.held_by)
    return Counter({str(scope): int(number) for scope, number in connection.execute(query)})


def _shared(limit: Limit, written: CallLimits, used: Usage, running: int, now: Now) -> dict[str, Any]:
    one: dict[str, Any] = {"opens_at": time(used.opens_at(limit, now))}
    if limit.concurrency is not None:
        one["concurrency"] = {"limit": limit.concurrency, "running": running}
    if limit.rate is not None:
        one["rate"] = {"limit": written.rate, "free": max(0, whole(used.level(limit, now)))}
    if limit.per_day is not None:
        one["per_day"] = {"limit": limit.per_day, "used": used.used_on(now), "resets_at": time(now.midnight)}
    return one


def _keys(scope: str, each: int, running: Counter[str], held: Counter[str]) -> dict[str, Any]:
    mine = f"key:{scope.partition(':')[2]}:"
    return {
        "limit": each,
        "running": sum(number for name, number in running.items() if name.startswith(mine)),
        "held": sum(number for name, number in held.items() if name.startswith(mine)),
        "keys_held": sum(name.startswith(mine) for name in held),
    }
