"""All handlers of this process, by name: the board's own, and those that packages register."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from board.effects.resume import ResumeAction
from board.effects.webhook import WebhookAction
from board.ports import Handler
from board.worker.builtin import Direct, Echo, Outside

GROUP = "board.handlers"


def load_handlers() -> dict[str, Handler]:
    """The board's own handlers and those of every installed package in the entry-point group `board.handlers`.

    Raises ValueError when two packages claim one name: which one runs must not depend on chance.
    """
    found: dict[str, Handler] = {}
    own = [Echo(), Direct(), Outside(), cast(Handler, WebhookAction()), cast(Handler, ResumeAction())]
    for handler in [*own, *(h for point in entry_points(group=GROUP) for h in point.load()())]:
        if handler.name in found:
            raise ValueError(f"Two installed packages both bring a handler “{handler.name}”; remove one of them.")
        found[handler.name] = handler
    return found
