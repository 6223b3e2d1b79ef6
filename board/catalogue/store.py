"""Reading types and connections. The database is asked each time, so a change is seen at the next request."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import ValidationError
from sqlalchemy import Connection, RowMapping, select

from board.catalogue.models import connections, task_types
from board.catalogue.spec import TypeSpec
from board.ports import ConnectionView
from board.tasks.states import Pool


class Vault(Protocol):
    """What opens the stored secrets: board.access.crypto."""

    def encrypt(self, text: str) -> str: ...

    def decrypt(self, token: str) -> str: ...


@dataclass(frozen=True, slots=True)
class LoadedType:
    version: int
    spec: TypeSpec


class UnknownType(Exception):
    """No such type. The text names it and says how to make one."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no task type “{name}”. See the list at GET /api/v1/types.")


class Catalogue:
    """file_work: the handlers whose work waits for file slots."""

    def __init__(self, vault: Vault, file_work: Collection[str] = ()) -> None:
        self._vault, self._file_work = vault, file_work
        self._loaded: dict[tuple[str, int], LoadedType] = {}  # a version never changes, so it is parsed once

    def pool(self, spec: TypeSpec) -> Pool:
        """Whose slots the work of a type waits for."""
        if spec.handler.use == "outside":
            return Pool.OUTSIDE
        return Pool.FILES if spec.handler.use in self._file_work else Pool.BOARD

    def current(self, connection: Connection, name: str) -> LoadedType:
        """The newest version of a type. Raises UnknownType."""
        query = select(task_types.c.version).where(task_types.c.name == name, task_types.c.current)
        version = connection.execute(query).scalar()
        if version is None:
            raise UnknownType(name)
        return self.version(connection, name, version)

    def version(self, connection: Connection, name: str, version: int) -> LoadedType:
        loaded = self._loaded.get((name, version))
        if loaded is None:
            query = select(task_types.c.spec).where(task_types.c.name == name, task_types.c.version == version)
            raw = connection.execute(query).scalar()
            if raw is None:
                raise UnknownType(name)
            loaded = self._loaded[name, version] = LoadedType(version, TypeSpec.model_validate(raw))
        return loaded

    def owner(self, connection: Connection, name: str, version: int) -> str | None:
        """Whom a type names as its owner; None also for types that are gone, or cannot be read by this release."""
        try:
            return self.version(connection, name, version).spec.owner
        except (UnknownType, ValidationError):
            return None

    def tokens_per_day(self, connection: Connection, name: str) -> int | None:
        """The budget of a type's newest version; None without one, and for types that are gone."""
        try:
            return self.current(connection, name).spec.limits.tokens_per_day
        except UnknownType:
            return None

    def beyond(self, connection: Connection, handlers: Collection[str]) -> list[str]:
        """The types whose newest version needs a handler that is not among these."""
        query = select(task_types.c.name, task_types.c.version).where(task_types.c.current)
        specs = (self.version(connection, row.name, row.version).spec for row in connection.execute(query).all())
        return [
            spec.name
            for spec in specs
            if spec.handler.use not in handlers or (spec.action is not None and spec.action.use not in handlers)
        ]

    def unseal(self, token: str) -> str:
        """A stored secret, for one call."""
        return self._vault.decrypt(token)

    def open_connection(self, connection: Connection, name: str) -> ConnectionView | None:
        """A connection with its secrets, for one attempt."""
        row = connection.execute(select(connections).where(connections.c.name == name)).mappings().first()
        if row is None:
            return None
        secrets = json.loads(self._vault.decrypt(row["secrets"])) if row["secrets"] else {}
        return ConnectionView(row["name"], row["kind"], row["url"], row["options"], secrets)


def connection_options(connection: Connection, name: str) -> dict[str, Any]:
    """Every key of a connection that is no secret; empty where it does not exist any more."""
    return connection.execute(select(connections.c.options).where(connections.c.name == name)).scalar() or {}


def list_types(connection: Connection) -> list[RowMapping]:
    """The current version of every type, by name."""
    query = select(task_types).where(task_types.c.current).order_by(task_types.c.name)
    return list(connection.execute(query).mappings())


def types_through(connection: Connection, names: Collection[str]) -> dict[str, str]:
    """The types whose work goes through one of these connections, each with the connection."""
    rows = connection.execute(select(task_types.c.name, task_types.c.spec).where(task_types.c.current)).all()
    through = {name: (spec.get("handler") or {}).get("connection") for name, spec in rows}
    return {name: used for name, used in through.items() if used is not None and used in names}


def list_connections(connection: Connection) -> list[RowMapping]:
    """Every connection by name, without its secrets; `secret_names` says which are set."""
    query = select(connections).order_by(connections.c.name)
    return list(connection.execute(query).mappings())


def connection_kinds(connection: Connection) -> dict[str, str]:
    query = select(connections.c.name, connections.c.kind)
    return {row.name: row.kind for row in connection.execute(query)}


def shown_connection(row: RowMapping) -> dict[str, Any]:
    """A connection as everybody who may read types sees it."""
    return {
        "name": row["name"],
        "kind": row["kind"],
        "url": row["url"],
        **row["options"],
        "has_secrets": bool(row["secrets"]),
        "version": row["version"],
        "updated_at": row["updated_at"],
    }
