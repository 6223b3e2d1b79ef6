"""What processes tell each other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Self, TypeAlias

from board.tasks.claiming import Lease
from board.tasks.text import clean

MAX_MESSAGE = 1000  # characters of a progress message; a line on a page holds about a hundred


class Channel(StrEnum):
    """Who listens: processes that work, or processes that callers wait in."""

    WORKERS = "workers"
    CALLERS = "callers"


class Call(StrEnum):
    """Whoever hears it looks for himself."""

    WORK = "work"  # a task may be ready for the board's own workers
    OUTBOX = "outbox"  # a call to another system may be due
    RULES = "rules"  # a pause or the weights of the lanes were changed
    CANCEL = "cancel"  # a running task was asked to stop
    CALLED_BACK = "called_back"  # an answer has come that an attempt may be waiting for
    OUTSIDE = "outside"  # a task may be ready for an outside worker
    REVIEWS = "reviews"  # a task has come to a person, or has left one


@dataclass(frozen=True, slots=True)
class Changed:
    """A task has moved. task: its internal id, here and below."""

    task: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an attempt is. percent: 0 to 100. attempt: its lease token."""

    task: int
    attempt: int
    percent: float | None
    message: str | None

    @classmethod
    def told(cls, lease: Lease, percent: float | None, message: str | None) -> Self:
        """As a handler tells it, whatever it tells: made fit to be shown."""
        if percent is not None:
            percent = None if math.isnan(percent) else min(100.0, max(0.0, percent))
        return cls(lease.task, lease.token, percent, None if message is None else clean(str(message))[:MAX_MESSAGE])


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of what a model writes. offset: how many characters of this attempt's text came before it."""

    task: int
    attempt: int
    offset: int
    text: str


Said: TypeAlias = Progress | Text
Signal: TypeAlias = Call | Changed | Said


def channel_of(signal: Signal) -> Channel:
    inside = isinstance(signal, Call) and signal not in (Call.OUTSIDE, Call.REVIEWS)
    return Channel.WORKERS if inside else Channel.CALLERS
