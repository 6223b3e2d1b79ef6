"""A real mail server on a loopback port, which takes, refuses or loses mail as it is told."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Mail:
    """One mail as it came. parsed: its headers and text."""

    sender: str
    recipients: list[str]
    raw: bytes
    secure: bool
    user: str | None

    @property
    def parsed(self) -> EmailMessage:
        found = message_from_bytes(self.raw, policy=default)
        assert isinstance(found, EmailMessage)
        return found


class _AnyPort(Controller):
    """A controller that learns its port from the system."""

    def _trigger_server(self) -> None:
        assert self.server is not None
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


class MailServer:
    """`mails` is what was taken. rcpt, data: what to say next at that point, such as "550 5.1.1 unknown"; in order.

    "lose" takes the mail and closes the line without an answer, "hang" takes it and never answers, "cut" closes it
    without taking anything.
    """

    def __init__(self, **options: Any) -> None:
        self.mails: list[Mail] = []
        self.rcpt: list[str] = []
        self.data: list[str] = []
        self.logins: list[tuple[str, str]] = []
        self._arrived = threading.Condition()
        scheme = options.pop("scheme", "smtp+plain")
        self._controller = _AnyPort(
            self, hostname="127.0.0.1", port=0, authenticator=self._login, server_hostname="mail.test", **options
        )
        self._controller.start()
        self.port = self._controller.port
        self.url = f"{scheme}://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._controller.stop()

    def wait_for(self, count: int, timeout: float = 20.0) -> list[Mail]:
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.mails) >= count, timeout), f"{len(self.mails)} of {count}"
            return list(self.mails)

    def _login(self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        if not isinstance(data, LoginPassword):
            return AuthResult(success=False)
        self.logins.append((data.login.decode(), data.password.decode()))
        good = data.password == b"right password"
        return AuthResult(success=good, handled=False, auth_data=data.login.decode())

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        answer = self.rcpt.pop(0) if self.rcpt else "250 2.1.5 OK"
        if answer == "cut":
            server.transport.abort()
        elif answer.startswith("2"):
            envelope.rcpt_tos.append(address)
        return answer if answer != "cut" else "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        answer = self.data.pop(0) if self.data else "250 2.0.0 OK: queued as 4711"
        if answer in ("lose", "hang") or answer.startswith("2"):
            with self._arrived:
                secure = server.transport.get_extra_info("ssl_object") is not None
                mail = Mail(envelope.mail_from, envelope.rcpt_tos, envelope.content, secure, session.auth_data)
                self.mails.append(mail)
                self._arrived.notify_all()
        if answer in ("lose", "cut"):
            server.transport.abort()
        if answer == "hang":
            await asyncio.sleep(3600)
        return answer if answer[0].isdigit() else "250 OK"


@dataclass(frozen=True)
class Certificate:
    """Of 127.0.0.1, signed by itself. path: for whoever is to trust it."""

    path: Path
    key: Path

    @property
    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.path, self.key)
        return context


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder = tmp_path_factory.mktemp("certificate")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mail.test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem, private = folder / "cert.pem", folder / "key.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return Certificate(pem, private)


OpenMailServer = Callable[..., MailServer]


@pytest.fixture
def open_mail_server() -> Iterator[OpenMailServer]:
    """`open_mail_server(scheme="smtps", ssl_context=…)`; see aiosmtpd's Controller for the rest."""
    opened: list[MailServer] = []

    def open_(**options: Any) -> MailServer:
        opened.append(MailServer(**options))
        return opened[-1]

    yield open_
    for it in opened:
        it.close()


@pytest.fixture
def mail_server(open_mail_server: OpenMailServer) -> MailServer:
    """Takes everything, without TLS, until told otherwise."""
    return open_mail_server()
