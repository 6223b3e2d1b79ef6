"""Microsoft Teams: a Workflows webhook. It says that it took the message, not that it stands in the channel."""

from __future__ import annotations

import json
from typing import Any

from board.ports import Answer, ConnectionView, Http, Message, Success, Told
from integrations.notify import calling
from integrations.notify.texts import cut, in_bytes, line

MOST_BYTES = 20_000  # 28 KB are allowed, and trouble was seen above 21; more fails after it was taken, unseen


class Teams:
    kind = "teams"
    per_minute = 30

    async def send(self, connection: ConnectionView, message: Message, http: Http) -> Told:
        answer = await calling.post(connection, connection.secrets["key"], body(message), http)
        return Success(reference="accepted") if isinstance(answer, Answer) else answer


def body(message: Message) -> dict[str, Any]:
    """An adaptive card. Its text blocks know Markdown, so the texts stand in runs, which do not."""

    def made(text: str) -> dict[str, Any]:
        card = {
            "type": "AdaptiveCard",
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "version": "1.4",
            "msteams": {"width": "Full"},
            "body": [
                _run(cut(line(message.title), 200), size="Medium", weight="Bolder"),
                *(_run(part) for part in text.splitlines() if part.strip()),
            ],
            "actions": [{"type": "Action.OpenUrl", "title": message.label, "url": message.link}],
        }
        attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
        return {"type": "message", "attachments": [attachment]}

    return made(cut(message.text, MOST_BYTES, lambda text: in_bytes(json.dumps(made(text), ensure_ascii=False))))


def _run(text: str, **how: str) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **how}]}
