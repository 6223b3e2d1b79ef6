"""Signals on their way: collected, without repeats, and written as JSON messages that every carrier takes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from board.signals.signal import Call, Changed, Channel, Progress, Signal, Text, channel_of

MAX_BYTES = 7900  # PostgreSQL takes less than 8000 bytes a message
ENVELOPE = 120  # of them for the sender and the names of the lists
# A piece of text that fits one message even if each character is written as \u0000; see MAX_BYTES.
PIECE = 1000
# Characters of text in one batch. A model writes some hundred a second; whoever writes megabytes does not need all of
# them seen live. What is left out shows in the offsets.
MAX_TEXT = 64_000
# Ids of changed tasks in one part: together shorter than a message, however long they are.
IDS = 300

_Part: TypeAlias = tuple[str, str]  # the list in which it stands, and its JSON


class Batch:
    """What is to be told, in order: first what was said, then who has changed, so that an end comes last."""

    def __init__(self) -> None:
        self._calls: dict[Call, None] = {}
        self._changed: dict[int, None] = {}
        self._progress: dict[tuple[int, int], Progress] = {}
        self._texts: list[Text] = []
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._calls or self._changed or self._progress or self._texts)

    def add(self, signal: Signal) -> None:
        match signal:
            case Call():
                self._calls[signal] = None
            case Changed():
                self.add_changed([signal.task])
            case Progress():
                self._progress[signal.task, signal.attempt] = signal
            case Text() if self._size < MAX_TEXT:
                self._texts.append(signal)
                self._size += len(signal.text)

    def add_changed(self, tasks: Iterable[int]) -> None:
        """`Changed` for many, by their internal ids: a busy worker tells of thousands a second."""
        self._changed.update(dict.fromkeys(tasks))

    def messages(self, sender: str) -> list[tuple[Channel, str]]:
        """Ready to be sent: (channel, text of at most MAX_BYTES in UTF-8). sender: this process."""
        calls: dict[Channel, list[_Part]] = {channel: [] for channel in Channel}
        for call in self._calls:
            calls[channel_of(call)].append(("calls", _dump(call)))
        ids = list(map(str, self._changed))
        changed = [("changed", ",".join(ids[begin : begin + IDS])) for begin in range(0, len(ids), IDS)]
        callers = [*calls[Channel.CALLERS], *self._said(), *changed]
        return [
            *((Channel.WORKERS, text) for text in _packed(sender, calls[Channel.WORKERS])),
            *((Channel.CALLERS, text) for text in _packed(sender, callers)),
        ]

    def _said(self) -> Iterator[_Part]:
        for it in self._progress.values():
            yield "progress", _dump([it.task, it.attempt, it.percent, it.message])
        for text in self._joined():
            for begin in range(0, len(text.text), PIECE):
                piece = text.text[begin : begin + PIECE]
                yield "text", _dump([text.task, text.attempt, text.offset + begin, piece])

    def _joined(self) -> Iterator[Text]:
        """The texts, with what follows on each other in one piece; each task's in order."""
        runs: dict[tuple[int, int], list[Text]] = {}
        for text in self._texts:
            runs.setdefault((text.task, text.attempt), []).append(text)
        for (task, attempt), pieces in runs.items():
            begin, parts, end = pieces[0].offset, [pieces[0].text], pieces[0].offset + len(pieces[0].text)
            for piece in pieces[1:]:
                if piece.offset != end:
                    yield Text(task, attempt, begin, "".join(parts))
                    begin, parts = piece.offset, []
                parts.append(piece.text)
                end = piece.offset + len(piece.text)
            yield Text(task, attempt, begin, "".join(parts))


def _packed(sender: str, parts: Iterable[_Part]) -> Iterator[str]:
    """As few messages as hold the parts in their order."""
    message: dict[str, list[str]] = {}
    size = 0
    for kind, text in parts:
        cost = (len(text) if text.isascii() else len(text.encode())) + 1  # a comma
        if message and size + cost > MAX_BYTES - ENVELOPE:
            yield _written(sender, message)
            message, size = {}, 0
        message.setdefault(kind, []).append(text)
        size += cost
    if message:
        yield _written(sender, message)


def _written(sender: str, message: dict[str, list[str]]) -> str:
    lists = "".join(f',"{kind}":[{",".join(texts)}]' for kind, texts in message.items())
    return f'{{"from":{_dump(sender)}{lists}}}'


def decode(message: str) -> tuple[str, list[Signal]]:
    """The sender and the signals of a message. What another version of the board writes and this one does not know is
    left out; ValueError for what is no message at all."""
    try:
        read = json.loads(message)
        signals: list[Signal] = [Call(name) for name in read.get("calls", []) if name in list(Call)]
        signals += [Progress(*it) for it in read.get("progress", [])]
        signals += [Text(*it) for it in read.get("text", [])]
        signals += [Changed(int(task)) for task in read.get("changed", [])]
        return str(read["from"]), signals
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("not a message of the board") from error


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
