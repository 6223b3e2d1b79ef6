"""The action `mail`: after approval one mail goes out, to one or several, once as far as that can be.

The composed bytes belong to the operation, so every try bears the same Message-ID. The server's "taken" is kept before
anything else; where it was lost, nobody can be asked, and a person looks for the Message-ID in the server's log.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from board.ports import (
    AlreadyConfirmed,
    Cause,
    ConnectionUser,
    ConnectionView,
    ErrorClass,
    Failure,
    Http,
    Job,
    Later,
    NotStarted,
    OperationBusy,
    OperationConflict,
    Outcome,
    SentOperation,
    Success,
    Tried,
    UnknownOutcome,
)
from integrations.mail.message import compose, message_id, on_the_way, recipients_of
from integrations.mail.parties import BadMail, Party, Recipients
from integrations.mail.smtp import AnswerLost, NotReached, NotTaken, Server, hand_over, look

SECONDS = 60.0  # for one mail, from the first contact to the answer
# A server that says "not now" means minutes: greylisting refuses a stranger's first try for one to five of them.
NOT_NOW_SECONDS = 60.0
LOOK_SECONDS = 20.0
FIELDS = ("to", "subject", "text")
FURTHER = ("cc", "bcc", "html")


class MailAction:
    name = "mail"
    phases = ("act",)
    connection_kind: str | None = "mail"
    side_effects = True

    def check(self, handler: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        inputs = handler.get("inputs") or {}
        problems = [(f"inputs.{name}", "is missing: a mail needs to, subject and text") for name in FIELDS]
        problems = [(path, words) for path, words in problems if not inputs.get(path.removeprefix("inputs."))]
        return problems + [
            (f"inputs.{name}", "is no part of a mail") for name in inputs if name not in FIELDS + FURTHER
        ]

    async def run(self, job: Job) -> Outcome:
        connection = job.connection
        assert connection is not None
        try:
            server, sender = (
                server_of(connection),
                Party.read(connection.options.get("sender"), "the connection's sender"),
            )
            recipients = Recipients.read(job.inputs)
            subject, text, html = (job.inputs.get(name) for name in ("subject", "text", "html"))
            mail = compose(sender, recipients, subject, text, datetime.now(UTC), html)
        except ValueError as error:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(error))
        target = f"Mail to {recipients} by {server.name}"
        try:
            mail = await job.send(kind="mail", target=target, request=mail, fixed=True)
        except AlreadyConfirmed as done:
            return Success(reference=done.reference)
        except OperationBusy as busy:
            return Later(str(busy), busy.seconds)
        except OperationConflict as conflict:
            return Failure(ErrorClass.PERMANENT, Cause.PRECONDITION, str(conflict), open_operation=conflict.unknown)
        return await self._hand_over(job, server, sender, mail)

    async def _hand_over(self, job: Job, server: Server, sender: Party, mail: bytes) -> Outcome:
        # Every try goes to those to whom the first one went, also when the type says something else by now.
        recipients = recipients_of(mail)
        begun = time.monotonic()
        outcome: Outcome
        try:
            seconds = min(SECONDS, job.timeout)
            said = await hand_over(server, sender.spec, recipients, on_the_way(mail), seconds)
        except NotReached as error:
            word, said = "transient", str(error)
            outcome = Failure(ErrorClass.TRANSIENT, Cause.NETWORK, said)
        except NotTaken as error:
            word, said = ("transient" if error.passes else "rejected"), str(error)
            outcome = refused(error)
        except AnswerLost as error:
            word, said = "unknown", f"{error} {_look_for(message_id(mail))}"
            outcome = UnknownOutcome(said)
        else:
            word, outcome = "confirmed", Success(reference=message_id(mail))
            await job.reference(message_id(mail))  # the proof, before anything else can go wrong
        job.tried(int((time.monotonic() - begun) * 1000), None, word, said)
        return outcome

    async def reconcile(self, job: Job, operation: SentOperation) -> Outcome | NotStarted:
        if operation.reference:
            return Success(reference=operation.reference)  # kept only once the server had taken it
        look_for = _look_for(message_id(operation.request or b""))
        return UnknownOutcome(f"{operation.target} was sent, and no answer is known. {look_for}")

    async def test(self, connection: ConnectionView, http: Http, users: Sequence[ConnectionUser]) -> Sequence[Tried]:
        try:
            server = server_of(connection)
            Party.read(connection.options.get("sender"), "the connection's sender")
            await look(server, LOOK_SECONDS)
        except (ValueError, NotReached, NotTaken, AnswerLost) as error:
            return [Tried("wrong", str(error))]
        signed_in = " and accepts the login" if server.user else ""
        return [Tried("ok", f"{server.name} answers{signed_in}. No mail was sent.")]


def server_of(connection: ConnectionView) -> Server:
    basic = (connection.secrets.get("auth") or {}).get("basic") or {}
    try:
        return Server.read(connection.url, basic.get("user"), basic.get("password", ""))
    except ValueError as error:
        raise BadMail(f"The connection “{connection.name}” cannot be used: {error}") from error


def refused(error: NotTaken) -> Failure:
    if error.passes:
        return Failure(
            ErrorClass.TRANSIENT, Cause.UPSTREAM_5XX, str(error), code=str(error.code), retry_after=NOT_NOW_SECONDS
        )
    cause = Cause.AUTH if error.code in (530, 534, 535, 538) else Cause.UPSTREAM_4XX
    return Failure(ErrorClass.PERMANENT, cause, str(error), code=str(error.code))


def _look_for(found: str) -> str:
    return f"Look for Message-ID {found} in the mail server's log." if found else "Look in the mail server's log."
