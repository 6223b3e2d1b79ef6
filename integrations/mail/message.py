"""Composes a mail: one sender, one recipient, plain text. The bytes are ASCII, so every server takes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid, parseaddr

MAX_SUBJECT = 500  # characters; what is longer is a text that went into the wrong field
_POLICY = SMTP.clone(cte_type="7bit")
_MESSAGE_ID = re.compile(rb"^Message-ID:\s*(<[^>\r\n]+>)", re.IGNORECASE | re.MULTILINE)


class BadMail(ValueError):
    """The mail cannot be composed. The text names the field and says what to do."""


@dataclass(frozen=True, slots=True)
class Party:
    """Who writes or gets a mail. spec: the bare address, in ASCII."""

    name: str
    spec: str

    @staticmethod
    def read(text: object, field: str) -> Party:
        """From `li@example.org` or `Li <li@example.org>`. Raises BadMail, naming the field."""
        if not isinstance(text, str) or not text.strip():
            raise BadMail(f"The mail has no address: {field} is empty.")
        wrong = BadMail(f"{field} holds no single mail address: “{text.strip()[:100]}”.")
        if not text.isprintable() or text.count("@") != 1:  # several, or none; a header's end hides in a line break
            raise wrong
        name, spec = parseaddr(text)
        local, _, domain = spec.partition("@")
        try:
            spec = f"{local}@{domain.encode('idna').decode()}"
            Address(addr_spec=spec)
        except (ValueError, MessageError, IndexError):
            raise wrong from None
        if not (local and "." not in (local[0], local[-1]) and domain and spec.isascii()) or re.search(r"[\s,;]", spec):
            raise wrong
        return Party(name, spec)

    @property
    def header(self) -> Address:
        return Address(self.name, addr_spec=self.spec)


def compose(sender: Party, recipient: Party, subject: object, text: object, at: datetime) -> bytes:
    """The whole mail with a Message-ID of its own. at: its date, with a zone. Raises BadMail."""
    if not isinstance(subject, str) or not (line := " ".join(subject.split())):
        raise BadMail("The mail has no subject: inputs.subject is empty or no text.")
    if len(line) > MAX_SUBJECT:
        raise BadMail(f"inputs.subject has {len(line)} characters; at most {MAX_SUBJECT} are allowed.")
    if not isinstance(text, str) or not text.strip():
        raise BadMail("The mail says nothing: inputs.text is empty or no text.")
    mail = EmailMessage(policy=_POLICY)
    mail["From"], mail["To"], mail["Subject"] = sender.header, recipient.header, line
    mail["Date"] = format_datetime(at)
    mail["Message-ID"] = make_msgid(domain=sender.spec.partition("@")[2])
    mail["Auto-Submitted"] = "auto-generated"  # so that no absence note answers it (RFC 3834)
    mail.set_content(text)
    return mail.as_bytes()


def message_id(message: bytes) -> str:
    """The Message-ID of a composed mail."""
    found = _MESSAGE_ID.search(message.partition(b"\r\n\r\n")[0])
    return found[1].decode() if found else ""
