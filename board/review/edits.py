"""An approval with changes: which parts of the output a reviewer may change, and the output that comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from board.catalogue.shape import first_problem
from board.catalogue.spec import TypeSpec


class BadEdit(Exception):
    """The changes cannot be taken. field: where; code: the contract's."""

    def __init__(self, code: str, field: str, message: str) -> None:
        super().__init__(message)
        self.code, self.field = code, field


def editable(spec: TypeSpec, result: Any) -> list[str]:
    """The names in the output that may be changed with an approval; none where the output is no object."""
    return [name for name in spec.review.editable if name in result] if isinstance(result, Mapping) else []


def merged(spec: TypeSpec, result: Any, edits: Mapping[str, Any]) -> dict[str, Any]:
    """The output with the changes in it, at its top level. Raises BadEdit; the type's schema holds as for the work."""
    for name in edits:
        if name not in spec.review.editable:
            raise BadEdit("not_editable", f"edits.{name}", f"edits.{name} is not editable in this type.")
    if not isinstance(result, Mapping):
        raise BadEdit("not_editable", "edits", "The output is no object, so no part of it can be changed.")
    whole = {**result, **edits}
    if spec.handler.output_schema is not None and (problem := first_problem(spec.handler.output_schema, whole)):
        path, message = problem
        raise BadEdit("edit_does_not_fit", path or "edits", f"The changed output does not fit the type: {message}")
    return whole


def differences(result: Mapping[str, Any], edits: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What was changed, by name, as {"from", "to"}."""
    return {name: {"from": result.get(name), "to": value} for name, value in edits.items() if result.get(name) != value}
