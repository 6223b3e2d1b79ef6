"""Composes a mail: plain text, or text and HTML. The bytes are ASCII, so every server takes them.

They are kept as they are composed, and every try sends them. So they say all: also who gets a copy without being named,
which is taken out on the way.
"""

from __future__ import annotations

import re
from datetime import datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid

import nh3

from integrations.mail.parties import BadMail, Party, Recipients

MAX_SUBJECT = 500  # characters; what is longer is a text that went into the wrong field
_POLICY = SMTP.clone(cte_type="7bit")
_MESSAGE_ID = re.compile(rb"^Message-ID:\s*(<[^>\r\n]+>)", re.IGNORECASE | re.MULTILINE)
_HIDDEN = re.compile(rb"^Bcc:[^\r\n]*\r\n(?:[ \t][^\r\n]*\r\n)*", re.IGNORECASE | re.MULTILINE)
# A picture from elsewhere tells its server who reads the mail, and when.
_TAGS = nh3.ALLOWED_TAGS - {"img", "map", "area"}


def compose(
    sender: Party, recipients: Recipients, subject: object, text: object, at: datetime, html: object = None
) -> bytes:
    """The whole mail with a Message-ID of its own. at: its date, with a zone. Raises BadMail."""
    if not isinstance(subject, str) or not (line := " ".join(subject.split())):
        raise BadMail("The mail has no subject: inputs.subject is empty or no text.")
    if len(line) > MAX_SUBJECT:
        raise BadMail(f"inputs.subject has {len(line)} characters; at most {MAX_SUBJECT} are allowed.")
    if not isinstance(text, str) or not text.strip():
        raise BadMail("The mail says nothing: inputs.text is empty or no text.")
    if not isinstance(html, str | None):
        raise BadMail("inputs.html is no text.")
    mail = EmailMessage(policy=_POLICY)
    mail["From"], mail["Subject"] = sender.header, line
    for name, parties in (("To", recipients.to), ("Cc", recipients.cc), ("Bcc", recipients.bcc)):
        if parties:
            mail[name] = [party.header for party in parties]
    mail["Date"] = format_datetime(at)
    mail["Message-ID"] = make_msgid(domain=sender.spec.partition("@")[2])
    mail["Auto-Submitted"] = "auto-generated"  # so that no absence note answers it (RFC 3834)
    mail.set_content(text)
    if html is not None and html.strip():
        mail.add_alternative(harmless(html), subtype="html")
    return mail.as_bytes()


def harmless(html: str) -> str:
    """HTML without what runs, fetches or hides: the words in it may be those of an AI, or of a stranger."""
    return nh3.clean(html, tags=_TAGS, url_schemes={"http", "https", "mailto"}, link_rel=None)


def message_id(message: bytes) -> str:
    """The Message-ID of a composed mail."""
    found = _MESSAGE_ID.search(message.partition(b"\r\n\r\n")[0])
    return found[1].decode() if found else ""


def recipients_of(message: bytes) -> list[str]:
    """The bare addresses to which a composed mail goes, each once."""
    mail = message_from_bytes(message.partition(b"\r\n\r\n")[0] + b"\r\n\r\n", policy=_POLICY)
    found = (address.addr_spec for name in ("To", "Cc", "Bcc") if name in mail for address in mail[name].addresses)
    return list(dict.fromkeys(found))


def on_the_way(message: bytes) -> bytes:
    """A composed mail as it is sent: nobody sees who gets a blind copy."""
    head, between, body = message.partition(b"\r\n\r\n")
    return _HIDDEN.sub(b"", head + b"\r\n").removesuffix(b"\r\n") + between + body
