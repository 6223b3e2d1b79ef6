"""n8n: workflows do the work of a task."""

from __future__ import annotations

from board.ports import Handler
from integrations.n8n.webhook import N8nWebhook


def handlers() -> list[Handler]:
    """What the entry point `board.handlers` names."""
    return [N8nWebhook()]
