"""Who writes a mail and who gets it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.errors import MessageError
from email.headerregistry import Address
from email.utils import parseaddr
from typing import Any

# What every mail server has to take for one mail (RFC 5321, 4.5.3.1.8). Who writes to more needs a list address.
MOST = 100


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
        wrong = BadMail(
            f"{field} holds no single mail address: “{text.strip()[:100]}”. Several are given as a list, one each."
        )
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


@dataclass(frozen=True, slots=True)
class Recipients:
    to: tuple[Party, ...]
    cc: tuple[Party, ...] = ()
    bcc: tuple[Party, ...] = ()

    @staticmethod
    def read(inputs: Mapping[str, Any]) -> Recipients:
        """From the inputs to, cc and bcc: a text is one address, a list holds one in each entry. Raises BadMail.

        A text never holds several: what a stranger wrote into one field of a form would else choose who gets the mail.
        """
        found = Recipients(*(_several(inputs.get(name), f"inputs.{name}") for name in ("to", "cc", "bcc")))
        if not found.to:
            raise BadMail("The mail has no address: inputs.to is empty.")
        if (number := len({*found.specs})) > MOST:
            raise BadMail(f"The mail goes to {number} addresses; at most {MOST} are allowed. Use a list address.")
        return found

    @property
    def specs(self) -> list[str]:
        """The bare addresses, each once, in their order."""
        return list(dict.fromkeys(party.spec for party in (*self.to, *self.cc, *self.bcc)))

    def __str__(self) -> str:
        first, *others = self.specs
        return first if not others else f"{first} and {len(others)} other{'s' if len(others) > 1 else ''}"


def _several(value: object, field: str) -> tuple[Party, ...]:
    """An entry that is empty names nobody: `cc: ["{{ payload.assistant }}"]` where there is none."""
    if not isinstance(value, list):
        return (Party.read(value, field),) if value not in (None, "") else ()
    filled = [it for it in value if it is not None and it != ""]
    return tuple(Party.read(it, f"{field}[{number}]") for number, it in enumerate(filled))
