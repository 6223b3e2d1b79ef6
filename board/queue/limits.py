"""Which limits hold for a task: those of its type, of its key, and of the connection that it uses now.

Always the limits of the type's newest version and of the connection as it is: changing a limit is for what waits, not
for what comes. A type's limits hold for its work; a key for its work and its action, so that one thing is never dealt
with twice at once; a connection's for every call through it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, RowMapping, func, select

from board.catalogue.fields import CallLimits
from board.catalogue.models import connections, task_types
from board.catalogue.store import Catalogue, LoadedType, UnknownType
from board.rates import Bucket, parse_rate, spread
from board.tasks.states import Phase

Task = Mapping[str, Any] | RowMapping  # at least type, type_version, phase and limit_key of a row of `tasks`


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit. scope: its name, as in `tasks.held_by`. row: that of table `limits` under which it is counted."""

    scope: str
    row: str
    concurrency: int | None = None
    rate: Bucket | None = None
    per_day: int | None = None


@dataclass(frozen=True, slots=True)
class _Of:
    """The limits of all tasks of one type and version in one phase. per_key: how many of each key at once."""

    shared: tuple[Limit, ...] = ()
    per_key: int | None = None


def type_scope(name: str) -> str:
    return f"type:{name}"


def connection_scope(name: str) -> str:
    return f"connection:{name}"


def key_scope(type_name: str, limit_key: str) -> str:
    return f"key:{type_name}:{limit_key}"


class Rules:
    """The limits as one process knows them; `refresh` them often. For any number of threads."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._stamp: tuple[Any, ...] | None = None
        self._types: dict[str, LoadedType] = {}
        self._connections: dict[str, CallLimits] = {}
        self._known: dict[tuple[str, int, str], _Of] = {}

    def refresh(self, connection: Connection) -> None:
        """Read what has changed. Costs two short queries when nothing has: types are only added, connections counted
        by their versions."""
        newest = connection.execute(select(func.max(task_types.c.id))).scalar()
        changes = connection.execute(select(func.count(), func.sum(connections.c.version))).one()
        stamp = (newest, *changes)
        if stamp == self._stamp:
            return
        names = connection.execute(select(task_types.c.name, task_types.c.version).where(task_types.c.current)).all()
        types = {}
        for name, version in names:
            with suppress(ValidationError):  # written by hand; the worker will say so
                types[name] = self._catalogue.version(connection, name, version)
        options = connection.execute(select(connections.c.name, connections.c.options)).all()
        limited = {name: CallLimits.model_validate(it["limits"]) for name, it in options if it.get("limits")}
        self._types, self._connections = types, limited
        self._known, self._stamp = {}, stamp

    def keep_up(self, connection: Connection, tasks: Sequence[Task]) -> None:
        """Refresh where the type of one of these was made or changed a moment ago."""
        for task in tasks:
            known = self._types.get(task["type"])
            if known is None or known.version < task["type_version"]:
                self.refresh(connection)
                return

    def of(self, connection: Connection, task: Task) -> tuple[Limit, ...]:
        """Every limit that holds for a task in the phase in which it is. Empty for most."""
        place = (task["type"], task["type_version"], task["phase"])
        it = self._known.get(place)
        if it is None:
            self.keep_up(connection, [task])
            known = (
                self._known
            )  # what is found is kept only with the limits it was found in: another thread may refresh
            it = known[place] = self._find(connection, *place)
        if it.per_key is None or task["limit_key"] is None:
            return it.shared
        return (*it.shared, self._of_key(task["type"], task["limit_key"], it.per_key))

    def by_scope(self, scope: str) -> Limit | None:
        """The limit of that name, or None where it does not hold any more."""
        kind, _, name = scope.partition(":")
        if kind == "connection":
            return self._of_connection(name)
        if kind == "type":
            return self._of_type(name)
        name, _, key = name.rpartition(":")
        per_key = self._per_key(name)
        return None if per_key is None else self._of_key(name, key, per_key)

    def shared(self) -> list[Limit]:
        """Every limit of a type or connection, by name."""
        found = [*map(self._of_type, sorted(self._types)), *map(self._of_connection, sorted(self._connections))]
        return [limit for limit in found if limit is not None]

    def keyed(self) -> dict[str, int]:
        """The types with a key, and how many of each key may run at once."""
        return {name: number for name in sorted(self._types) if (number := self._per_key(name)) is not None}

    def users(self, connection_name: str) -> tuple[list[str], list[str]]:
        """The types whose work, and whose action, uses a connection, by their newest versions."""
        work = [name for name, it in self._types.items() if it.spec.handler.connection == connection_name]
        act = [
            name for name, it in self._types.items() if it.spec.action and it.spec.action.connection == connection_name
        ]
        return work, act

    def call_limits(self, scope: str) -> CallLimits | None:
        """A limit as people wrote it."""
        kind, _, name = scope.partition(":")
        if kind == "connection":
            return self._connections.get(name)
        return self._types[name].spec.limits if kind == "type" and name in self._types else None

    # -- parts --------------------------------------------------------------------------------------------------------

    def _find(self, connection: Connection, type_name: str, version: int, phase: str) -> _Of:
        try:
            spec = self._catalogue.version(connection, type_name, version).spec
        except (UnknownType, ValidationError):  # removed or written by hand; the worker will say so
            return _Of()
        block = spec.action if phase == Phase.ACT else spec.handler
        found = [
            self._of_type(type_name) if phase == Phase.WORK else None,
            self._of_connection(block.connection) if block is not None and block.connection else None,
        ]
        return _Of(tuple(limit for limit in found if limit is not None), self._per_key(type_name))

    def _of_type(self, name: str) -> Limit | None:
        if name not in self._types:
            return None
        limits = self._types[name].spec.limits
        return _limit(type_scope(name), limits, concurrency=limits.concurrency_key is None)

    def _of_connection(self, name: str) -> Limit | None:
        limits = self._connections.get(name)
        return None if limits is None else _limit(connection_scope(name), limits)

    def _per_key(self, type_name: str) -> int | None:
        if type_name not in self._types or self._types[type_name].spec.limits.concurrency_key is None:
            return None
        return self._types[type_name].spec.limits.concurrency or 1

    @staticmethod
    def _of_key(type_name: str, key: str, concurrency: int) -> Limit:
        return Limit(key_scope(type_name, key), type_scope(type_name), concurrency=concurrency)


def _limit(scope: str, limits: CallLimits, *, concurrency: bool = True) -> Limit | None:
    at_once = limits.concurrency if concurrency else None
    if at_once is None and limits.rate is None and limits.per_day is None:
        return None
    bucket = None if limits.rate is None else spread(parse_rate(limits.rate))
    return Limit(scope, scope, at_once, bucket, limits.per_day)
