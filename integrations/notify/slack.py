"""Slack: an incoming webhook of one channel. It answers with a word, not with JSON."""

from __future__ import annotations

from typing import Any

from board.ports import Answer, ConnectionView, Http, Message, Success, Told
from integrations.notify import calling
from integrations.notify.texts import cut, line

MOST_TITLE, MOST_TEXT, MOST_LABEL = 150, 3000, 75  # characters of a header, a section, a button


class Slack:
    kind = "slack"
    per_minute = 50  # one a second, for a while

    async def send(self, connection: ConnectionView, message: Message, http: Http) -> Told:
        answer = await calling.post(connection, connection.secrets["key"], body(message), http)
        if not isinstance(answer, Answer):
            return answer
        return Success() if answer.text.strip() == "ok" else calling.not_understood(connection, answer)


def body(message: Message) -> dict[str, Any]:
    """Blocks of plain text: nothing in them is markup. `text` is what a phone shows, so it is escaped."""
    title = cut(line(message.title), MOST_TITLE)
    button = {
        "type": "button",
        "text": _plain(cut(message.label, MOST_LABEL)),
        "url": message.link,
        "action_id": "open",
    }
    return {
        "text": title.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"),
        "blocks": [
            {"type": "header", "text": _plain(title)},
            {"type": "section", "text": _plain(cut(message.text, MOST_TEXT))},
            {"type": "actions", "elements": [button]},
        ],
    }


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}
