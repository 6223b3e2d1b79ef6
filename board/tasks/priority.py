"""The priority of a new task: the one its body names, else what its type works out of the body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from board import templating
from board.catalogue.spec import PRIORITIES, PriorityRule

# Of a task that no rule of its type is for: routine.
USUAL = "P2"
_SHOWN = 80  # characters of a wrong outcome that a message repeats


class BadPriority(Exception):
    """What the type says gives no priority for this body. The text says what came out."""


def work_out(given: str | Sequence[PriorityRule], context: Mapping[str, Any]) -> str:
    """P0 to P3. given: a type's `priority`; context: what templates see of the body. Raises BadPriority."""
    if not isinstance(given, str):
        return _of_rules(given, context)
    if given in PRIORITIES:
        return given
    try:
        value = templating.fill(given, context)
    except templating.TemplateProblem as error:
        raise BadPriority(f"The priority of this type could not be worked out: {error}") from error
    found = value.strip() if isinstance(value, str) else value
    if found not in PRIORITIES:
        shown = "nothing" if found in (None, "") else f"“{str(found)[:_SHOWN]}”"
        raise BadPriority(
            f"The priority of this type, “{given[:_SHOWN]}”, came out as {shown}; it must be P0, P1, P2 or P3. "
            "Correct what it reads, or send priority."
        )
    return str(found)


def _of_rules(rules: Sequence[PriorityRule], context: Mapping[str, Any]) -> str:
    """The first rule that holds. One about a value that is missing does not hold; one that fails is not passed over:
    a rush order would run as routine, and nobody would know."""
    for rule in rules:
        try:
            if rule.when is None or templating.holds(rule.when, context):
                return rule.use
        except templating.MissingValue:
            continue
        except templating.TemplateProblem as error:
            raise BadPriority(f"A rule for the priority of this type failed: {error}") from error
    return USUAL
