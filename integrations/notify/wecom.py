"""WeCom: the robot of one group. It counts bytes, and its key is in its address."""

from __future__ import annotations

from typing import Any

from board.ports import Answer, Cause, ConnectionView, Http, Message, Success, Told
from integrations.notify import calling
from integrations.notify.texts import cut, in_bytes, line, without_markup

MOST_BYTES = 4096  # of a Markdown text
_BUSY = 45009
_GONE = 93000


class WeCom:
    kind = "wecom"
    per_minute = 18  # 20 are allowed

    async def send(self, connection: ConnectionView, message: Message, http: Http) -> Told:
        answer = await calling.post(connection, connection.secrets["key"], body(message), http)
        return read(connection, answer) if isinstance(answer, Answer) else answer


def body(message: Message) -> dict[str, Any]:
    """Markdown, which takes far more text than a card, with a link on a line of its own."""
    title = cut(without_markup(line(message.title)), 200)

    def made(text: str) -> str:
        return f"**{title}**\n{without_markup(text)}\n[{without_markup(message.label)}]({message.link})"

    text = cut(message.text, MOST_BYTES, lambda it: in_bytes(made(it)))
    return {"msgtype": "markdown", "markdown": {"content": made(text)}}


def read(connection: ConnectionView, answer: Answer) -> Told:
    found = calling.document(answer)
    code = calling.number(found, "errcode")
    if code is None:
        return calling.not_understood(connection, answer)
    if code == 0:
        return Success()
    said = calling.short(str(found.get("errmsg", ""))) or "without a reason"
    if code == _BUSY:
        return calling.too_many(f"wecom takes no more messages now ({code}): {said}", code=code)
    words = f"wecom refused the message ({code}): {said}."
    if code == _GONE:
        words += f" Check `url` of the connection “{connection.name}”: there is no robot at that address."
        return calling.refused(words, code, Cause.AUTH)
    return calling.refused(words, code)
