"""The last that one attempt has said: its newest progress, and the end of its text, as far as it is kept."""

from __future__ import annotations

from collections import deque

from board.signals.signal import Progress, Said, Text


class Tail:
    """limit: characters of text that are kept. What is left out in front shows in the offset of the text."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._progress: Progress | None = None
        self._pieces: deque[Text] = deque()
        self._size = 0

    def add(self, said: Said) -> None:
        newest = self._progress or (self._pieces[-1] if self._pieces else None)
        if newest is not None and newest.attempt != said.attempt:
            if said.attempt < newest.attempt:
                return  # an attempt that has lost its task
            self.clear()
        if isinstance(said, Progress):
            self._progress = said
            return
        if self._pieces and said.offset != self._pieces[-1].offset + len(self._pieces[-1].text):
            self._pieces.clear()  # a piece was lost on the way: what came before it does not belong to this one
            self._size = 0
        self._pieces.append(said)
        self._size += len(said.text)
        while self._size > self._limit and len(self._pieces) > 1:
            self._size -= len(self._pieces.popleft().text)

    def said(self) -> list[Said]:
        """All of it, the text in one piece."""
        found: list[Said] = [] if self._progress is None else [self._progress]
        if self._pieces:
            first = self._pieces[0]
            text = "".join(piece.text for piece in self._pieces)
            found.append(Text(first.task, first.attempt, first.offset, text))
        return found

    def clear(self) -> None:
        self._progress = None
        self._pieces.clear()
        self._size = 0
