"""Mail: what follows approval may be a mail."""

from __future__ import annotations

from board.ports import Handler
from integrations.mail.action import MailAction


def handlers() -> list[Handler]:
    """What the entry point `board.handlers` names."""
    return [MailAction()]
