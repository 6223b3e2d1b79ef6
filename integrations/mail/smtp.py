"""Hands one mail to a mail server, and says exactly how far that came.

Nobody is asked to take the mail before its last line is out: what fails earlier has sent nothing, what is lost after it
may have been taken.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

import aiosmtplib

Security = Literal["tls", "starttls", "plain"]
# scheme: how the line is made safe, and the usual port. Never "if it is offered": somebody between could take it away.
_SCHEMES: dict[str, tuple[Security, int]] = {
    "smtps": ("tls", 465),
    "smtp": ("starttls", 587),
    "smtp+plain": ("plain", 25),
}
LEAVE_SECONDS = 2.0  # for a polite end, once the mail is taken
_SECRET = re.compile(r"[A-Za-z0-9+/=]{40,}")  # what a server repeats of a login


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int
    security: Security
    user: str | None = None
    password: str = field(default="", repr=False)

    @staticmethod
    def read(url: str, user: str | None = None, password: str = "") -> Server:
        """From `smtps://host`, `smtp://host` (STARTTLS) or `smtp+plain://host`, each with or without a port.

        Raises ValueError with a plain sentence.
        """
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise ValueError("The address of a mail server begins with smtps://, smtp:// or smtp+plain://.")
        security, usual = _SCHEMES[parts.scheme]
        if user is not None and security == "plain":
            raise ValueError("A password is not sent over smtp+plain://; use smtps:// or smtp://.")
        return Server(parts.hostname, parts.port or usual, security, user, password)

    @property
    def name(self) -> str:
        return f"{self.host}:{self.port}"


class NotReached(Exception):
    """There is no line to the server, or it broke before the mail was out: nothing was sent."""


class NotTaken(Exception):
    """The server refused. code: its reply code; 4xx passes, 5xx stays."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def passes(self) -> bool:
        return 400 <= self.code < 500


class AnswerLost(Exception):
    """The mail was out and no answer came: the server may or may not have taken it."""


async def hand_over(server: Server, sender: str, recipients: Sequence[str], message: bytes, seconds: float) -> str:
    """The server's answer once it has taken the mail. sender, recipients: bare addresses; message: with its headers.

    For all of them or for nobody: where the server refuses one, the mail is not sent. seconds: for all of it. Raises
    NotReached, NotTaken, AnswerLost.
    """
    async with _said_plainly(server) as said:
        async with asyncio.timeout(seconds) as limit, _line(server, seconds) as line:
            await line.mail(sender)
            await _name(line, recipients)
            said.out = True
            answer = await line.data(message)
            limit.reschedule(None)  # taken: no clock turns that into an error any more
        return _text(answer.code, answer.message)


async def _name(line: aiosmtplib.SMTP, recipients: Sequence[str]) -> None:
    """Tell the server who gets the mail. Raises the refusal that stays, else one that passes."""
    refusals: list[aiosmtplib.SMTPRecipientRefused] = []
    for recipient in recipients:
        try:
            await line.rcpt(recipient)
        except aiosmtplib.SMTPRecipientRefused as error:
            refusals.append(error)
    if refusals:
        raise max(refusals, key=lambda error: error.code)


async def look(server: Server, seconds: float) -> None:
    """Go as far as the login, and send nothing. Raises as `hand_over`."""
    async with _said_plainly(server), asyncio.timeout(seconds), _line(server, seconds):
        pass


@dataclass(slots=True)
class _Said:
    out: bool = False  # the mail is on its way and not answered


@asynccontextmanager
async def _line(server: Server, seconds: float) -> AsyncIterator[aiosmtplib.SMTP]:
    """A line to the server, safe and signed in."""
    context = ssl.create_default_context()
    line = aiosmtplib.SMTP(
        hostname=server.host,
        port=server.port,
        use_tls=server.security == "tls",
        start_tls=False,
        tls_context=context if server.security == "tls" else None,
        local_hostname=socket.gethostname(),
        timeout=seconds,
    )
    try:
        await line.connect()
        await line.ehlo()
        if server.security == "starttls":
            if not line.supports_extension("starttls"):
                raise NotTaken(
                    530,
                    f"{server.name} offers no STARTTLS. Use smtps://, or in a trusted network smtp+plain:// without a "
                    "password.",
                )
            await line.starttls(server_hostname=server.host, tls_context=context)
            await line.ehlo()
        if server.user is not None:
            await line.login(server.user, server.password)
        yield line
        with suppress(aiosmtplib.SMTPException, OSError, TimeoutError):
            await line.quit(timeout=LEAVE_SECONDS)
    finally:
        line.close()


@asynccontextmanager
async def _said_plainly(server: Server) -> AsyncIterator[_Said]:
    """Turns whatever goes wrong into one of the three errors of this module."""
    said = _Said()
    try:
        yield said
    except aiosmtplib.SMTPResponseException as error:
        if not 400 <= error.code < 600:  # no reply code that means anything
            raise _broken(server, said, error) from error
        what = "did not accept the login" if isinstance(error, aiosmtplib.SMTPAuthenticationError) else "refused"
        if isinstance(error, aiosmtplib.SMTPRecipientRefused):
            what += f" {error.recipient}"
        raise NotTaken(error.code, f"{server.name} {what}: {_text(error.code, error.message)}") from error
    except aiosmtplib.SMTPNotSupported as error:
        raise NotTaken(504, f"{server.name} does not know what is needed: {error}.") from error
    except (aiosmtplib.SMTPException, OSError, TimeoutError, ValueError) as error:
        raise _broken(server, said, error) from error


def _broken(server: Server, said: _Said, error: Exception) -> Exception:
    words = _SECRET.sub("…", " ".join(str(error).split())).rstrip(".") or "no answer in time"
    if said.out:
        return AnswerLost(f"The mail went out to {server.name}, but no answer came: {words}.")
    return NotReached(f"{server.name} could not be reached: {words}.")


def _text(code: int, message: str) -> str:
    return _SECRET.sub("…", f"{code} {' '.join(message.split())}")[:500]
