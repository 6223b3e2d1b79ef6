"""DingTalk: the custom robot of one group."""

from __future__ import annotations

import base64
import hmac
import json
import time
from typing import Any
from urllib.parse import quote_plus

from board.ports import Answer, Cause, ConnectionView, Http, Message, Success, Told
from integrations.notify import calling
from integrations.notify.texts import cut, in_bytes, line, without_markup

MOST_BYTES = 19_500  # of the body; about 20,000 are allowed
# Who sends more than 20 messages in a minute is shut out for ten minutes.
SHUT_OUT_SECONDS = 600.0
_BUSY = (130101, 1111)


class DingTalk:
    kind = "dingtalk"
    per_minute = 18  # 20 are allowed

    async def send(self, connection: ConnectionView, message: Message, http: Http) -> Told:
        url, secret = connection.secrets["key"], connection.secrets.get("secret")
        if isinstance(secret, str):
            moment = int(time.time() * 1000)
            url += f"&timestamp={moment}&sign={quote_plus(sign(secret, moment))}"
        answer = await calling.post(connection, url, body(message), http)
        return read(connection, answer) if isinstance(answer, Answer) else answer


def body(message: Message) -> dict[str, Any]:
    """A card with a button. Its text is Markdown without an escape, and a line ends with two spaces there."""
    title = cut(without_markup(line(message.title)), 200)

    def made(text: str) -> dict[str, Any]:
        lines = without_markup(text).replace("\n", "  \n")
        card = {"title": title, "text": f"### {title}\n\n{lines}"}
        return {
            "msgtype": "actionCard",
            "actionCard": card | {"singleTitle": message.label, "singleURL": message.link},
        }

    return made(cut(message.text, MOST_BYTES, lambda text: in_bytes(json.dumps(made(text), ensure_ascii=False))))


def sign(secret: str, moment: int) -> str:
    """moment: milliseconds since 1970. The secret is the key here, unlike at Feishu."""
    return base64.b64encode(hmac.digest(secret.encode(), f"{moment}\n{secret}".encode(), "sha256")).decode()


def read(connection: ConnectionView, answer: Answer) -> Told:
    found = calling.document(answer)
    code = calling.number(found, "errcode")
    if code is None:
        code = calling.number(found, "status")
    if code is None:
        return calling.not_understood(connection, answer)
    if code == 0:
        return Success()
    said = calling.short(str(found.get("errmsg") or found.get("punish") or "without a reason"))
    if code in _BUSY:
        return calling.too_many(f"dingtalk takes no more messages now ({code}): {said}", SHUT_OUT_SECONDS, code)
    words = f"dingtalk refused the message ({code}): {said}."
    if code == 310000:
        words += " Check `secret`, the robot's keywords (one of them may be “AI Task Board”) and its list of addresses."
        return calling.refused(words, code, Cause.AUTH)
    return calling.refused(words, code)
