"""Any JSON value as something a page can show: readable, in order, long numbers digit for digit, within a limit."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from board.web import prose

# On one page. More than that nobody reads there; the page says what it leaves out, and the whole is a download away.
MOST_VALUES = 1500
MOST_CHARACTERS = 200_000
# Characters that are rendered as prose: at the worst 10 µs each, measured on texts made to be slow.
MOST_PROSE = 100_000
SHORT = 72  # characters of a text that stands on the line of its name


@dataclass(slots=True)
class Node:
    """kind: object, list, text, prose, long, number, truth, nothing. left_out: entries, or characters of a text, that
    are not shown."""

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

    def whole(self) -> bool:
        return not self.left_out and all(child.whole() for child in self.children)


def tree(value: Any, *, markdown: bool = False) -> Node:
    """markdown: texts are rendered as prose (what an AI wrote); otherwise they stand as they are."""
    return _Builder(markdown).node(value, None)


class _Builder:
    """Spends what one page may hold."""

    def __init__(self, markdown: bool) -> None:
        self._values, self._characters = MOST_VALUES, MOST_CHARACTERS
        self._prose = MOST_PROSE if markdown else 0

    def node(self, value: Any, name: str | None) -> Node:
        if isinstance(value, dict):
            return self._branch("object", name, [(str(key), item) for key, item in value.items()])
        if isinstance(value, list):
            return self._branch("list", name, [(None, item) for item in value])
        if isinstance(value, str):
            return self._text(value, name)
        if isinstance(value, bool):
            return Node("truth", name, "true" if value else "false")
        if value is None:
            return Node("nothing", name, "null")
        return Node("number", name, json.dumps(value))

    def _branch(self, kind: str, name: str | None, items: list[tuple[str | None, Any]]) -> Node:
        node = Node(kind, name)
        for place, (key, item) in enumerate(items):
            if not self._values:
                node.left_out = len(items) - place
                break
            self._values -= 1
            node.children.append(self.node(item, key))
        return node

    def _text(self, value: str, name: str | None) -> Node:
        shown = value[: self._characters]
        self._characters -= len(shown)
        left_out = len(value) - len(shown)
        if not left_out and len(shown) <= self._prose:
            self._prose -= len(shown)
            return Node("prose", name, shown, prose.render(shown))
        if left_out or len(shown) > MOST_PROSE // 2:
            return Node("long", name, shown, left_out=left_out)
        return Node("prose" if "\n" in shown or len(shown) > SHORT else "text", name, shown)
