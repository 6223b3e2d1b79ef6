"""The door of a process to the others: what is sent here is heard here at once, and there some milliseconds later."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence

from board.signals.callers import Callers
from board.signals.carrier import Carrier
from board.signals.line import Line
from board.signals.signal import Call, Changed, Channel, Signal


class Signals:
    """carrier: between the processes; None where there is none (SQLite without Redis)."""

    def __init__(self, callers: Callers, carrier: Carrier | None) -> None:
        self.callers = callers
        self._carrier = carrier
        self._me = secrets.token_hex(4)
        self._hearers: dict[Call, list[Callable[[], None]]] = {call: [] for call in Call}
        self._senders = {call: self._sender(call) for call in Call}
        self._line: Line | None = None

    def on(self, call: Call, hearer: Callable[[], None]) -> None:
        """Have a function called, from any thread, whenever it is heard. It must return at once."""
        self._hearers[call].append(hearer)

    def start(self, channels: Collection[Channel]) -> None:
        """Listen to the other processes, and tell them what is sent here; without channels only that.

        Returns at once."""
        self.callers.wanted = Channel.CALLERS in channels
        if self._carrier is not None:
            self._line = Line(self._carrier, self._me, channels, self._hear, self.ring)
            self._line.start()

    def send(self, signal: Signal) -> None:
        """Tell everybody. Never waits; callable from any thread. After the commit, not before."""
        self._hear(signal)
        if self._line is not None:
            self._line.post(signal)

    def changed(self, tasks: Sequence[int]) -> None:
        """Tell everybody that these tasks have moved, by their internal ids. As `send`."""
        self.callers.changed(tasks)
        if self._line is not None:
            self._line.post_changed(tasks)

    def sender(self, call: Call) -> Callable[[], None]:
        """`send` for one call, always the same function: many moves in one transaction need it once."""
        return self._senders[call]

    def ring(self) -> None:
        """As if everything had been heard: after messages may have been lost, and when the process goes down."""
        for hearers in self._hearers.values():
            for hearer in hearers:
                hearer()
        self.callers.ring()

    def wait_until_listening(self, seconds: float) -> bool:
        """Whether the others are heard, within this time."""
        return self._line is not None and self._line.listening.wait(seconds)

    def close(self) -> None:
        """The last words go out, for a moment at most; then nothing is sent or heard any more."""
        if self._line is not None:
            self._line.stop()
            self._line = None

    def _sender(self, call: Call) -> Callable[[], None]:
        return lambda: self.send(call)

    def _hear(self, signal: Signal) -> None:
        match signal:
            case Call():
                for hearer in self._hearers[signal]:
                    hearer()
            case Changed(task):
                self.callers.changed([task])
            case said:
                self.callers.said(said)
