"""All channels by which people are told, by the kind of their connections."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from board.notices.webhook import WebhookNotifier
from board.ports import Notifier

GROUP = "board.notifiers"


def load_notifiers(webhook_secret: str) -> dict[str, Notifier]:
    """The board's own and those of every installed package. webhook_secret: signs calls to connections that have
    none of their own. Raises ValueError when two claim one kind."""
    found: dict[str, Notifier] = {}
    own = [cast(Notifier, WebhookNotifier(webhook_secret))]
    for notifier in [*own, *(it for point in entry_points(group=GROUP) for it in point.load()())]:
        if notifier.kind in found:
            raise ValueError(f"Two installed packages both tell people by “{notifier.kind}”; remove one of them.")
        found[notifier.kind] = notifier
    return found
