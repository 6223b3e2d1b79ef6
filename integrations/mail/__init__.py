"""Mail: what follows approval may be a mail, and people are told by mail."""

from __future__ import annotations

from board.ports import Handler, Notifier
from integrations.mail.action import MailAction
from integrations.mail.notice import MailNotifier


def handlers() -> list[Handler]:
    """What the entry point `board.handlers` names."""
    return [MailAction()]


def notifiers() -> list[Notifier]:
    """What the entry point `board.notifiers` names."""
    return [MailNotifier()]
