"""Telegram: a bot that writes into one chat."""

from __future__ import annotations

from html import escape
from typing import Any

from board.ports import Answer, Cause, ConnectionView, Http, Message, Success, Told
from integrations.notify import calling
from integrations.notify.texts import cut, in_utf16, is_public, line

MOST_UNITS = 4000  # 4096 UTF-16 units are allowed, once the markup is read


class Telegram:
    kind = "telegram"
    per_minute = 18  # 20 are allowed in a group

    async def send(self, connection: ConnectionView, message: Message, http: Http) -> Told:
        url = f"{connection.url.rstrip('/')}/bot{connection.secrets['key']}/sendMessage"
        answer = await calling.post(connection, url, body(message, connection.options), http, any_status=True)
        return read(connection, answer) if isinstance(answer, Answer) else answer


def body(message: Message, options: Any) -> dict[str, Any]:
    """HTML, of which only the title is bold. A link that others cannot reach stands in the text: no button takes it."""
    title = cut(line(message.title), 200)
    button = is_public(message.link)
    rest = "" if button else f"\n{message.link}"
    text = cut(message.text, MOST_UNITS, lambda it: in_utf16(f"{title}\n{it}{rest}"))
    made: dict[str, Any] = {
        "chat_id": options.get("chat"),
        "text": f"<b>{escape(title, quote=False)}</b>\n{escape(text + rest, quote=False)}",
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": True},
    }
    if options.get("thread") is not None:
        made["message_thread_id"] = options["thread"]
    if button:
        made["reply_markup"] = {"inline_keyboard": [[{"text": message.label, "url": message.link}]]}
    return made


def read(connection: ConnectionView, answer: Answer) -> Told:
    found = calling.document(answer)
    if found.get("ok") is True and answer.status < 300:
        return Success(reference=str((found.get("result") or {}).get("message_id", "")) or None)
    if "ok" not in found:
        if answer.status >= 300:
            return calling.of_status(connection, answer)
        return calling.not_understood(connection, answer)
    parameters = found.get("parameters") or {}
    code = calling.number(found, "error_code") or answer.status
    said = calling.short(str(found.get("description", ""))) or "without a reason"
    if code == 429:
        wait = calling.number(parameters, "retry_after")
        return calling.too_many(f"telegram takes no more messages now: {said}", wait, code, answer.status)
    if (moved := parameters.get("migrate_to_chat_id")) is not None:
        words = f"The group of the connection “{connection.name}” has moved: set its `chat` to {moved}."
        return calling.refused(words, code, Cause.PRECONDITION)
    if code in (401, 403, 404):
        words = f"telegram refused the message ({code}): {said}. Check `key` of the connection “{connection.name}”,"
        return calling.refused(f"{words} and whether the bot is in the chat.", code, Cause.AUTH)
    if code >= 500:
        return calling.of_status(connection, answer, said)
    return calling.refused(f"telegram refused the message ({code}): {said}.", code)
