"""Messages to a program: a signed call to a connection of kind webhook, as all calls of the board are signed."""

from __future__ import annotations

from board.db.types import dump_json
from board.effects import calls
from board.ports import (
    Cause,
    ConnectionView,
    ErrorClass,
    Failure,
    Http,
    Lost,
    Message,
    NotSent,
    Refused,
    Success,
    Told,
    UnknownOutcome,
)

SECONDS = 20.0


class WebhookNotifier:
    kind = "webhook"
    per_minute = 300

    def __init__(self, default_secret: str) -> None:
        self._default_secret = default_secret

    async def send(self, connection: ConnectionView, message: Message, http: Http) -> Told:
        body = dump_json(
            {
                "event": message.event,
                "title": message.title,
                "text": message.text,
                "url": message.link,
                "data": message.data,
            }
        ).encode()
        headers = calls.request_headers(connection, message.id, body, self._default_secret)
        try:
            answer = await http.request("POST", connection.url, headers=headers, content=body, timeout=SECONDS)
        except NotSent as error:
            return Failure(ErrorClass.TRANSIENT, Cause.NETWORK, str(error))
        except Lost as error:
            return UnknownOutcome(str(error))
        except Refused as error:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error))
        if 200 <= answer.status < 300:
            return Success()
        words = f"The webhook answered {answer.status}."
        if answer.status == 429:
            wait = answer.headers.get("retry-after", "")
            return Failure(
                ErrorClass.QUOTA, Cause.RATE_LIMIT, words, retry_after=float(wait) if wait.isdigit() else 60.0
            )
        if answer.status >= 500:
            return Failure(ErrorClass.TRANSIENT, Cause.UPSTREAM_5XX, words, http_status=answer.status)
        return Failure(ErrorClass.PERMANENT, Cause.UPSTREAM_4XX, words, http_status=answer.status)
