"""Any JSON value as something a page can show: readable, in order, long numbers digit for digit, within a limit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from board.web import prose

# Values on one page; more than that nobody reads, and the whole is a link away.
MOST = 1500
SHORT = 72  # characters of a text that stands on the line of its name


@dataclass(slots=True)
class Node:
    """kind: object, list, text, prose, long, number, truth, nothing. left_out: entries that are not shown."""

    kind: str
    name: str | None = None
    text: str = ""
    html: Markup | None = None
    children: list[Node] = field(default_factory=list)
    left_out: int = 0

    @property
    def simple(self) -> bool:
        """Whether it fits on the line of its name."""
        return not self.children and (self.kind not in ("prose", "long") or len(self.text) <= SHORT)

    def any_left_out(self) -> int:
        return self.left_out + sum(child.any_left_out() for child in self.children)


def tree(value: Any, *, markdown: bool = False) -> Node:
    """markdown: texts are rendered as prose (what an AI wrote); otherwise they stand as they are."""
    return _node(value, None, markdown, iter(range(MOST)))


def _node(value: Any, name: str | None, markdown: bool, budget: Iterator[int]) -> Node:
    if isinstance(value, dict):
        return _branch("object", name, [(str(key), item) for key, item in value.items()], markdown, budget)
    if isinstance(value, list):
        return _branch("list", name, [(None, item) for item in value], markdown, budget)
    if isinstance(value, str):
        if len(value) > prose.LONGEST:
            return Node("long", name, value)
        if markdown:
            return Node("prose", name, value, prose.render(value))
        return Node("prose" if "\n" in value or len(value) > SHORT else "text", name, value)
    if isinstance(value, bool):
        return Node("truth", name, "true" if value else "false")
    if value is None:
        return Node("nothing", name, "null")
    return Node("number", name, json.dumps(value))


def _branch(
    kind: str, name: str | None, items: list[tuple[str | None, Any]], markdown: bool, budget: Iterator[int]
) -> Node:
    node = Node(kind, name)
    for place, (key, item) in enumerate(items):
        if next(budget, None) is None:
            node.left_out = len(items) - place
            break
        node.children.append(_node(item, key, markdown, budget))
    return node
