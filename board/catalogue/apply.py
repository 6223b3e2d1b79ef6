"""Writing types and connections from YAML or JSON: all of a file, or nothing of it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError
from sqlalchemy import Connection, func, insert, select, update

from board.catalogue import plainyaml, served
from board.catalogue.connection_spec import ConnectionSpec
from board.catalogue.models import connections, task_types
from board.catalogue.spec import TypeSpec
from board.catalogue.store import Vault, connection_kinds
from board.db.clock import now
from board.db.locks import Turn, wait_for_turn
from board.db.types import dump_json
from board.ports import Handler
from board.tasks.text import BadJson, check

_ENV = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_Spec = TypeVar("_Spec", TypeSpec, ConnectionSpec)
_SECRETS = ("key", "secret", "auth")


class BadCatalogue(Exception):
    """A file cannot be applied. problems: (path of the field, plain sentence), at least one."""

    def __init__(self, problems: list[served.Problem]) -> None:
        super().__init__("; ".join(f"{path}: {message}" for path, message in problems))
        self.problems = problems


@dataclass(slots=True)
class Applied:
    """What an apply has changed, by name. warnings: plain sentences."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def parse(text: str, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The file as data, `${NAME}` in it replaced from the environment. Raises BadCatalogue."""
    try:
        loaded = plainyaml.load(text)
    except plainyaml.BadYaml as error:
        raise BadCatalogue([("file", f"is not valid YAML: {error}")]) from error
    if not isinstance(loaded, dict) or not loaded or not set(loaded) <= {"types", "connections"}:
        raise BadCatalogue([("file", "must be an object with the keys types, connections or both")])
    for key, value in loaded.items():
        if not isinstance(value, list):
            raise BadCatalogue([(key, "must be a list")])
    missing: list[served.Problem] = []
    try:
        filled = _with_environment(loaded, "", environment, missing)
    except RecursionError as error:
        raise BadCatalogue([("file", "is nested too deep, or an alias in it refers to itself")]) from error
    if missing:
        raise BadCatalogue(missing)
    assert isinstance(filled, dict)
    return filled


def apply(
    tx: Connection, data: Mapping[str, Any], *, handlers: Mapping[str, Handler], vault: Vault, author: str
) -> Applied:
    """Write what has changed, in the caller's transaction. Applying the same again changes nothing.

    data: {"types": […], "connections": […]} in the format of docs/types.md. Raises BadCatalogue before anything is
    written when any part is wrong.
    """
    problems: list[served.Problem] = []
    try:
        check(data)
    except BadJson as error:
        raise BadCatalogue([(error.path or "file", str(error))]) from error
    wait_for_turn(tx, Turn.CATALOGUE)
    new_connections = _read(ConnectionSpec, data.get("connections", []), "connections", problems)
    new_types = _read(TypeSpec, data.get("types", []), "types", problems)
    for path, spec, _ in new_connections:
        problems += [(f"{path}.{where}", what) for where, what in served.problems_of_connection(spec)]
    kinds = connection_kinds(tx) | {spec.name: spec.kind for _, spec, _ in new_connections}
    for path, type_spec, _ in new_types:
        problems += [(f"{path}.{w}", what) for w, what in served.problems_of_type(type_spec, handlers, kinds)]
    if problems:
        raise BadCatalogue(problems)
    applied = Applied()
    for _, spec, raw in new_connections:
        _note(applied, f"connection {spec.name}", _write_connection(tx, spec, raw, vault, author))
    for _, type_spec, raw in new_types:
        _note(applied, f"type {type_spec.name}", _write_type(tx, type_spec, raw, author))
        applied.warnings += served.doubts(type_spec)
    return applied


def _read(
    model: type[_Spec], items: list[Any], key: str, problems: list[served.Problem]
) -> list[tuple[str, _Spec, dict[str, Any]]]:
    read: list[tuple[str, _Spec, dict[str, Any]]] = []
    names: set[str] = set()
    for index, raw in enumerate(items):
        path = f"{key}[{index}]"
        try:
            spec = model.model_validate(raw)
        except ValidationError as error:
            problems += _faults(path, raw, error)
            continue
        if spec.name in names:
            problems.append((f"{path}.name", f"“{spec.name}” stands twice in this file"))
        names.add(spec.name)
        read.append((path, spec, raw))
    return read


def _faults(path: str, raw: Any, error: ValidationError) -> list[served.Problem]:
    return [
        (path + _place(raw, fault["loc"], missing=fault["type"] == "missing"), _sentence(fault))
        for fault in error.errors(include_url=False, include_input=False)
    ]


def _sentence(fault: Any) -> str:
    if fault["type"] == "extra_forbidden":
        return "is not a field here; leave it out"
    return "is missing" if fault["type"] == "missing" else str(fault["msg"]).removeprefix("Value error, ")


def _place(raw: Any, location: Sequence[str | int], *, missing: bool) -> str:
    """The path of a fault as its writer knows it: without the names of the alternatives that were tried."""
    path = ""
    for number, part in enumerate(location):
        if isinstance(part, int) and isinstance(raw, list) and part < len(raw):
            path, raw = f"{path}[{part}]", raw[part]
        elif isinstance(raw, dict) and (part in raw or (missing and number == len(location) - 1)):
            path, raw = f"{path}.{part}", raw.get(part)
    return path


def _write_type(tx: Connection, spec: TypeSpec, raw: dict[str, Any], author: str) -> str:
    mine = task_types.c.name == spec.name
    stored = tx.execute(select(task_types.c.spec).where(mine, task_types.c.current)).scalar()
    if stored is not None and dump_json(stored) == dump_json(raw):
        return "unchanged"
    newest = tx.execute(select(func.max(task_types.c.version)).where(mine)).scalar() or 0
    tx.execute(update(task_types).where(mine).values(current=False))
    tx.execute(
        insert(task_types).values(
            name=spec.name, version=newest + 1, current=True, spec=raw, created_at=now(), created_by=author
        )
    )
    return "updated" if newest else "created"


def _write_connection(tx: Connection, spec: ConnectionSpec, raw: dict[str, Any], vault: Vault, author: str) -> str:
    secrets = {name: raw[name] for name in _SECRETS if raw.get(name)}
    if spec.key:  # that of a chat is made from its address
        secrets = {**secrets, "key": spec.key}
    given = spec.model_dump(exclude_unset=True)
    options = {name: given[name] for name in given if name not in ("name", "kind", "url", *_SECRETS)}
    values = {"kind": spec.kind, "url": spec.url, "options": options}
    row = tx.execute(select(connections).where(connections.c.name == spec.name)).mappings().first()
    if row is not None:
        opened = vault.decrypt(row["secrets"]) if row["secrets"] else "{}"
        if all(row[key] == value for key, value in values.items()) and opened == dump_json(secrets):
            return "unchanged"
    closed = vault.encrypt(dump_json(secrets)) if secrets else ""
    if row is None:
        tx.execute(
            insert(connections).values(
                name=spec.name, secrets=closed, version=1, updated_at=now(), updated_by=author, **values
            )
        )
        return "created"
    tx.execute(
        update(connections)
        .where(connections.c.id == row["id"])
        .values(secrets=closed, version=connections.c.version + 1, updated_at=now(), updated_by=author, **values)
    )
    return "updated"


def _note(applied: Applied, name: str, outcome: str) -> None:
    getattr(applied, outcome).append(name)


def _with_environment(value: Any, path: str, environment: Mapping[str, str], missing: list[served.Problem]) -> Any:
    if isinstance(value, dict):
        return {k: _with_environment(v, f"{path}.{k}".lstrip("."), environment, missing) for k, v in value.items()}
    if isinstance(value, list):
        return [_with_environment(v, f"{path}[{i}]", environment, missing) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def replace(match: re.Match[str]) -> str:
        if match[1] not in environment:
            missing.append((path, f"the environment variable {match[1]} is not set"))
            return ""
        return environment[match[1]]

    return _ENV.sub(replace, value)
