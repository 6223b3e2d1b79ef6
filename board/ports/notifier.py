"""What tells people by a channel: a group chat, a mail, any program that takes webhooks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from board.ports.http import Http
from board.ports.job import ConnectionView
from board.ports.outcome import Failure, JsonObject, Success, UnknownOutcome


@dataclass(frozen=True, slots=True)
class Message:
    """One message to people. All texts are plain, and may hold what a stranger or an AI wrote: a sender lets none of it
    count as markup or call people by name.

    id: the same in every try of this message. title: one line. text: lines. link: where it can be looked at, and
    label: what the button to there says. to: whom it is for, where the channel has many: a mail address. event: what it
    is about, such as "queue.alert". data: the same for programs.
    """

    id: str
    title: str
    text: str
    link: str
    label: str
    to: str = ""
    event: str = "notice"
    data: JsonObject = field(default_factory=dict)


Told: TypeAlias = Success | Failure | UnknownOutcome


class Notifier(Protocol):
    """One kind of channel. Registered through the entry-point group `board.notifiers`: a function returning a list."""

    kind: str  # the kind of the connections that it speaks through
    per_minute: int  # how many messages one connection takes in a minute

    async def send(self, connection: ConnectionView, message: Message, http: Http) -> Told:
        """Send it once. Success only when the other side has said that it took the message; UnknownOutcome when that
        answer was lost. Raises nothing; takes at most half a minute."""
