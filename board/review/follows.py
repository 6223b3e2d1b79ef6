"""What the action of a task will be given once it is approved: filled in from what is stored, for whoever decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping

from board import templating
from board.catalogue.spec import TypeSpec
from board.tasks.context import template_context
from board.tasks.view import data_of

# The parts of a task that an AI has written, or may have.
_BY_AI = {"result", "judgement"}


@dataclass(frozen=True, slots=True)
class Given:
    """One input of the action. by_ai: the AI's output has a part in its value. problem: why it cannot be filled in."""

    name: str
    value: Any
    by_ai: bool
    problem: str | None = None


def given(connection: Connection, spec: TypeSpec, task: RowMapping) -> list[Given]:
    """The action's inputs by name; empty where the type has no action or names no inputs."""
    if spec.action is None or spec.action.inputs is None:
        return []
    context = template_context(task, data_of(connection, task["id"]))
    return [_one(name, template, context) for name, template in spec.action.inputs.items()]


def _one(name: str, template: Any, context: dict[str, Any]) -> Given:
    by_ai = bool(_BY_AI.intersection(templating.unknown_names(template, frozenset())))
    try:
        return Given(name, templating.fill(template, context), by_ai)
    except templating.TemplateProblem as error:
        return Given(name, None, by_ai, str(error))
