"""The ways of looking at what changed: since the round before, since the first one, against the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from board.web.difference import Change, changes


@dataclass(frozen=True, slots=True)
class View:
    """name: before, first, input. changes: empty where nothing changed, which is worth saying after a round."""

    name: str
    round: int | None
    instruction: str | None
    changes: list[Change]


def views(rounds: list[dict[str, Any]], result: Any, payload: Any) -> list[View]:
    """rounds: those before this one, with `round`, `instruction` and `result`. Nothing to compare: no view."""
    found = []
    told = [item for item in rounds if item["result"] is not None]
    if result is not None and told:
        last, first = told[-1], told[0]
        found.append(View("before", last["round"], last["instruction"], changes(last["result"], result)))
        if first is not last:
            found.append(View("first", first["round"], None, changes(first["result"], result)))
    old, new = _texts_in_both(payload, result)
    if against := changes(old, new):
        found.append(View("input", None, None, against))
    return found


def _texts_in_both(payload: Any, result: Any) -> tuple[dict[str, str], dict[str, str]]:
    """The texts that stand under the same name in input and output: what a revision of a text looks like."""
    if not isinstance(payload, dict) or not isinstance(result, dict):
        return {}, {}
    names = [name for name in result if isinstance(result[name], str) and isinstance(payload.get(name), str)]
    return {name: payload[name] for name in names}, {name: result[name] for name in names}
