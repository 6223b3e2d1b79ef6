"""What carries signals from process to process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NoReturn, Protocol

from board.signals.signal import Channel


class Carrier(Protocol):
    """Used from one event loop. It may lose messages, and it may fail at any time: `Line` begins again. It gives each
    channel a name that bears the installation's id, so that two boards never meet."""

    name: str  # completes the sentence “signals over … are interrupted”

    async def listen(
        self, channels: Collection[Channel], hear: Callable[[str], None], ready: Callable[[], None]
    ) -> NoReturn:
        """Listen until it fails. hear: called with each message, possibly also with those of this process. ready:
        called once, when from now on nothing is lost."""

    async def send(self, messages: Sequence[tuple[Channel, str]]) -> None:
        """Send (channel, message) in this order."""

    async def close(self) -> None:
        """Let go of what `send` has opened. Must not wait for an answer."""
