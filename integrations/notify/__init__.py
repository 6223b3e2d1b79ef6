"""Messages to people: group chats of six kinds, each in a file of its own."""

from __future__ import annotations

from board.ports import Notifier
from integrations.notify.dingtalk import DingTalk
from integrations.notify.feishu import Feishu
from integrations.notify.slack import Slack
from integrations.notify.teams import Teams
from integrations.notify.telegram import Telegram
from integrations.notify.wecom import WeCom


def notifiers() -> list[Notifier]:
    """What the entry point `board.notifiers` names."""
    return [Feishu(), DingTalk(), WeCom(), Slack(), Teams(), Telegram()]
