"""What a task is about, when it comes in and when it is edited: whether it fits its type, and what is known by it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from sqlalchemy import Connection

from board.catalogue.shape import first_problem
from board.catalogue.spec import TypeSpec
from board.db.types import dump_json
from board.files.references import references
from board.tasks.place import BadKey, limit_key


class FileDesk(Protocol):
    """What intake asks of the files."""

    def unknown(self, connection: Connection, file_ids: Collection[str]) -> set[str]: ...

    def use(self, tx: Connection, task: int, file_ids: Collection[str]) -> None: ...


class Problem(Exception):
    """The body cannot become a task. field: its path; code: the contract's."""

    def __init__(self, field: str, message: str, code: str = "invalid_field") -> None:
        super().__init__(message)
        self.field, self.code = field, code


def key_of(spec: TypeSpec, context: Mapping[str, Any]) -> str | None:
    """As board.tasks.place.limit_key. Raises Problem."""
    try:
        return limit_key(spec, context)
    except BadKey as error:
        raise Problem("payload", str(error), "bad_limit_key") from error


def payload_problem(spec: TypeSpec, payload: dict[str, Any]) -> tuple[str, str, str] | None:
    """(field, message, code) of the first thing that does not fit the type's schema."""
    if spec.payload_schema is None or (found := first_problem(spec.payload_schema, payload)) is None:
        return None
    path = f"payload{found[0]}"
    return path, f"{path}: {found[1]}", "payload_invalid"


def check_files(connection: Connection, files: FileDesk, payload: dict[str, Any]) -> None:
    """Every file that a payload names must be there. Raises Problem."""
    named = list(references(payload))
    if named and (missing := files.unknown(connection, {file_id for _, file_id in named})):
        path, file_id = next(it for it in named if it[1] in missing)
        message = (
            f"{path}: there is no file {file_id}. Upload it first with POST /files; what no task uses goes after a day."
        )
        raise Problem(path, message, "unknown_file")


def payload_hash(payload: dict[str, Any]) -> str:
    """Equal for equal content, whatever the order of keys."""
    return hashlib.sha256(dump_json(payload, sort_keys=True).encode()).hexdigest()
