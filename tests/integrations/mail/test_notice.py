"""Messages to people on a real mail server."""

from __future__ import annotations

import pytest

from board.effects.http import Door
from board.ports import ConnectionView, Failure, Message, Success, UnknownOutcome
from integrations.mail import notice
from tests.rig.mail import MailServer

MESSAGE = Message("n-1", "失败", "三个任务。", "https://board.example.org/tasks/T", "打开", to="li@example.org")


def post(url: str) -> ConnectionView:
    return ConnectionView("post", "mail", url, {"sender": "board@example.org"})


async def test_a_message_arrives_as_a_mail(mail_server: MailServer) -> None:
    told = await notice.MailNotifier().send(post(mail_server.url), MESSAGE, Door())
    assert isinstance(told, Success)
    [mail] = mail_server.mails
    assert mail.recipients == ["li@example.org"]
    assert mail.parsed["Subject"] == "失败"
    assert mail.parsed.get_content().splitlines() == ["三个任务。", "", "打开: https://board.example.org/tasks/T"]


async def test_refusals_and_lost_answers_are_told_apart(
    mail_server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail_server.data = ["451 4.7.1 greylisted", "554 5.7.1 spam", "lose"]
    notifier = notice.MailNotifier()
    told = [await notifier.send(post(mail_server.url), MESSAGE, Door()) for _ in range(3)]
    assert [getattr(it, "error_class", None) for it in told] == ["transient", "permanent", None]
    assert isinstance(told[2], UnknownOutcome)
    nobody = Message("n", "t", "x", "https://x.example", "Open", to="nobody")
    assert isinstance(await notifier.send(post(mail_server.url), nobody, Door()), Failure)
