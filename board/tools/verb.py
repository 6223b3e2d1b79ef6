"""One verb of the board for an agent: what it is called, what it takes, and what it does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from board.access.rights import Actor
from board.api.deps import in_thread
from board.rooms import Board
from board.tools.arguments import Argument, Given, Kind, read

# Dify gives a tool 60 seconds, and proxies before it often no more.
LONGEST_WAIT = 50.0
WAIT = Argument(
    "wait_seconds",
    f"Wait up to so many seconds for it, at most {LONGEST_WAIT:g}; the answer comes earlier when there is something to "
    "tell.",
    Kind.NUMBER,
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a verb. channel: by which way it came, as it stands in the history."""

    board: Board
    actor: Actor
    given: Given
    channel: str


class Unfinished(NamedTuple):
    """Of this task more may be told soon. again: seconds until there is, by time alone."""

    task: int
    event_seq: int  # of the last event that the answer knows of
    again: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a verb answers: a small JSON object. unfinished: what a caller with `wait_seconds` waits for."""

    body: dict[str, Any]
    created: bool = False
    unfinished: Unfinished | None = None


@dataclass(frozen=True, slots=True)
class Verb:
    """about: what it is for and when to use it, in words for a model; the only thing that it reads before it calls."""

    name: str
    title: str
    about: str
    arguments: Sequence[Argument]
    run: Callable[[Call], Reply]
    only_reads: bool = False


async def call(board: Board, actor: Actor, verb: Verb, raw: Any, channel: str) -> Reply:
    """Carry a verb out with the arguments as they came. Raises what the rooms raise, and ApiError."""
    given = read(verb.arguments, raw)
    run = partial(verb.run, Call(board, actor, given, channel))
    reply = await in_thread(run)
    seconds = min(given.number(WAIT.name) or 0.0, LONGEST_WAIT)
    if seconds <= 0 or reply.unfinished is None:
        return reply
    end = time.monotonic() + seconds
    with board.signals.callers.open() as caller:
        caller.follow(reply.unfinished.task)
        reply = await in_thread(run)  # what has moved before it was listened to is seen by this second look
        while (more := reply.unfinished) and (left := end - time.monotonic()) > 0 and not board.stopping.is_set():
            caller.seen = more.event_seq
            heard = await caller.wait(left if more.again is None else min(left, more.again))
            if (heard and caller.take()[0]) or more.again is not None:
                reply = await in_thread(run)
    return reply
