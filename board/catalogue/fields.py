"""What the fields of types and connections may hold: durations, names, templates, rates, schemas."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from board import templating
from board.catalogue.shape import problem_of_schema
from board.rates import parse_rate
from board.settings import parse_duration

NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$")


def _duration(value: Any) -> float:
    if isinstance(value, bool | int | float):
        raise ValueError(f"“{value}” has no unit; write {value}s, {value}m or {value}h")
    return parse_duration(value)


def _retention(value: Any) -> float | None:
    return None if value == "forever" else _duration(value)


def _name(value: str) -> str:
    if not NAME.match(value):
        raise ValueError(
            "use letters, digits, dot, underscore and hyphen, at most 120, starting with a letter or digit"
        )
    return value


def template(value: Any) -> Any:
    if problem := templating.check(value):
        raise ValueError(problem)
    return value


def _expression(value: str) -> str:
    if problem := templating.check_expression(value):
        raise ValueError(problem)
    return value


def _rate(value: str) -> str:
    parse_rate(value)
    return value


def _schema(value: dict[str, Any]) -> dict[str, Any]:
    if problem := problem_of_schema(value):
        raise ValueError(problem)
    return value


def _assignee(value: str) -> str:
    """As it stands on tasks: an address in small letters, or the name of a group."""
    name = value.strip().removeprefix("user:")
    if re.fullmatch(r"[^@\s\x00-\x1f]+@[^@\s\x00-\x1f]+", name) and len(name) <= 200:
        return name.lower()
    if not NAME.match(name):
        raise ValueError("must be the mail address of a person, or the name of a group")
    return name


Duration = Annotated[float, BeforeValidator(_duration)]
Retention = Annotated[float | None, BeforeValidator(_retention)]
Name = Annotated[str, AfterValidator(_name)]
Assignee = Annotated[str, AfterValidator(_assignee)]
Template = Annotated[str, AfterValidator(template)]
Expression = Annotated[str, AfterValidator(_expression)]
Schema = Annotated[dict[str, Any], AfterValidator(_schema)]
Templates = Annotated[dict[str, Any], AfterValidator(template)]
Rate = Annotated[str, AfterValidator(_rate)]


class Block(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CallLimits(Block):
    """How much may run at once, begin in a time, and begin in a day of the board's zone. None: no limit."""

    concurrency: int | None = Field(default=None, ge=1)
    rate: Rate | None = None
    per_day: int | None = Field(default=None, ge=1)
