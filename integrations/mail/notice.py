"""Messages to people by mail, each to one address."""

from __future__ import annotations

from datetime import UTC, datetime

from board.ports import Cause, ConnectionView, ErrorClass, Failure, Http, Message, Success, Told, UnknownOutcome
from integrations.mail.action import refused, server_of
from integrations.mail.message import compose, message_id, on_the_way, recipients_of
from integrations.mail.parties import Party, Recipients
from integrations.mail.smtp import AnswerLost, NotReached, NotTaken, hand_over

SECONDS = 30.0  # for one mail, from the first contact to the answer


class MailNotifier:
    kind = "mail"
    per_minute = 60  # many servers take a hundred an hour from a stranger, and thousands from who signs in

    async def send(self, connection: ConnectionView, message: Message, http: Http) -> Told:
        try:
            server = server_of(connection)
            sender = Party.read(connection.options.get("sender"), "the connection's sender")
            recipients = Recipients.read({"to": message.to})
            text = f"{message.text}\n\n{message.label}: {message.link}\n"
            mail = compose(sender, recipients, message.title[:300], text, datetime.now(UTC))
        except ValueError as error:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error))
        try:
            await hand_over(server, sender.spec, recipients_of(mail), on_the_way(mail), SECONDS)
        except NotReached as error:
            return Failure(ErrorClass.TRANSIENT, Cause.NETWORK, str(error))
        except NotTaken as error:
            return refused(error)
        except AnswerLost as error:
            return UnknownOutcome(str(error))
        return Success(reference=message_id(mail))
