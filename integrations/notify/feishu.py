"""Feishu and Lark: the custom bot of one group."""

from __future__ import annotations

import base64
import hmac
import json
import time
from typing import Any

from board.ports import Answer, Cause, ConnectionView, Http, Message, Success, Told
from integrations.notify import calling
from integrations.notify.texts import cut, in_bytes, line

MOST_BYTES = 20_000  # of the body; the limit is 20 KB
_BUSY = 11232  # "frequency limited"
_WHY = {
    9499: "the message has a wrong shape or is too long",
    19021: "the signature does not fit: check `secret`, and whether the clock of this machine is right",
    19022: "the address of this machine is not on the bot's list of IP addresses",
    19024: "none of the bot's keywords is in the message: add “AI Task Board” to them",
}


class Feishu:
    kind = "feishu"
    per_minute = 90  # 100 are allowed

    async def send(self, connection: ConnectionView, message: Message, http: Http) -> Told:
        secret = connection.secrets.get("secret")
        document = body(message, secret if isinstance(secret, str) else None, int(time.time()))
        answer = await calling.post(connection, connection.secrets["key"], document, http)
        return read(connection, answer) if isinstance(answer, Answer) else answer


def body(message: Message, secret: str | None, moment: int) -> dict[str, Any]:
    """A card with a button, signed where the bot has a secret. moment: seconds since 1970."""
    signed = {"timestamp": str(moment), "sign": sign(secret, moment)} if secret else {}

    def made(text: str) -> dict[str, Any]:
        elements = [
            {"tag": "div", "text": {"tag": "plain_text", "content": text}},
            {
                "tag": "button",
                "type": "primary",
                "text": {"tag": "plain_text", "content": message.label},
                "behaviors": [{"type": "open_url", "default_url": message.link}],
            },
        ]
        title = {"tag": "plain_text", "content": cut(line(message.title), 200)}
        card = {"schema": "2.0", "header": {"title": title, "template": "blue"}, "body": {"elements": elements}}
        return {**signed, "msg_type": "interactive", "card": card}

    return made(cut(message.text, MOST_BYTES, lambda text: in_bytes(json.dumps(made(text), ensure_ascii=False))))


def sign(secret: str, moment: int) -> str:
    """The key is time and secret, and nothing is signed with it: so Feishu wants it."""
    return base64.b64encode(hmac.digest(f"{moment}\n{secret}".encode(), b"", "sha256")).decode()


def read(connection: ConnectionView, answer: Answer) -> Told:
    found = calling.document(answer)
    code = calling.number(found, "code")
    if code is None:
        return calling.not_understood(connection, answer)
    if code == 0:
        return Success()
    said = calling.short(str(found.get("msg", "")))
    if code == _BUSY:
        return calling.too_many(f"feishu takes no more messages now: {said}", code=code)
    why = _WHY.get(code, said or "without a reason")
    return calling.refused(f"feishu refused the message ({code}): {why}.", code, _cause(code))


def _cause(code: int) -> Cause:
    return Cause.AUTH if code in (19021, 19022, 19024) else Cause.UPSTREAM_4XX
