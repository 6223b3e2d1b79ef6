"""A caller who follows one task over his own connection: where it stands, how far it is, what a model writes, its end.

As server-sent events, for the API and for the pages. Where a task stands is always read from the database, so no
`status` and no `end` is ever lost; progress and text come as they are heard, and text is left out for a slow reader.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from sqlalchemy import Connection, RowMapping
from sqlalchemy.exc import NoResultFound
from starlette.types import Receive, Scope, Send

from board.db.engine import AWAY
from board.rooms import Board
from board.signals.callers import Caller
from board.signals.signal import Progress, Said
from board.tasks import view
from board.tasks.history import moves_of
from board.tasks.ledger import Lease
from board.tasks.read import by_internal_id, progress_of
from board.tasks.states import TERMINAL, Status

PING_SECONDS = 15.0  # proxies cut connections that are silent for 30 or 60 s
AGAIN_SECONDS = 1.0  # a database that is away is asked again after so long
_EVENT_ID = re.compile(r"(\d{1,9})(-end)?")


def last_event(header: str | None) -> tuple[int | None, bool]:
    """The number of the last event that a caller knows of, and whether he has seen the end with it. What he sends may
    come from anywhere: what is no number of ours is none."""
    match = _EVENT_ID.fullmatch((header or "").strip())
    return (int(match[1]), match[2] is not None) if match else (None, False)


def look(board: Board, caller: Caller) -> dict[str, Any]:
    """The task object as it stands; the caller hears of what happens after."""
    with board.db.read() as connection:
        row = by_internal_id(connection, caller.task)
        caller.seen = row["event_seq"]
        return board.task_document(connection, row)


@dataclass(slots=True)
class Following:
    """What one caller gets to hear.

    until: the statuses with which it ends. after: the number of the last event that he knows: 0 for none, None for
    where it stands now. seconds: how long at most. may: whether he still may see the task, asked now and then. shown:
    what is done to text before it leaves. added: keys of the closing task object besides its own. whole: with that
    object, or its status only.
    """

    board: Board
    caller: Caller
    until: frozenset[Status]
    after: int | None = None
    seconds: float = float("inf")
    may: Callable[[], bool] = lambda: True
    shown: Callable[[str], str] = str
    added: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = True
    _known: int | None = None  # the number of the last event that was told

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The stream as bytes. It ends with `end`, and without it when the process goes down, the time is over, or the
        caller may not listen on."""
        over = time.monotonic() + self.seconds
        allowed = time.monotonic()
        moved = True  # nobody has looked yet
        while True:
            new, said = self.caller.take()
            moved = moved or new
            ended = False
            if moved:
                try:
                    frames, ended = await run_in_threadpool(self._look, said)
                    moved = False
                except AWAY:
                    frames = self._said(said)
                    await anyio.sleep(AGAIN_SECONDS)
                except NoResultFound:  # ended, and archived before this slow reader came to it
                    return
            else:
                frames = self._said(said)
            for frame in frames:
                yield frame
            left = over - time.monotonic()
            if ended or left <= 0 or self.board.stopping.is_set():
                return
            if not moved and not await self.caller.wait(min(PING_SECONDS, left)):
                yield KEEPALIVE_COMMENT
            if time.monotonic() - allowed >= PING_SECONDS:
                allowed = time.monotonic()
                with suppress(*AWAY):
                    if not await run_in_threadpool(self.may):
                        return

    def _look(self, said: Sequence[Said]) -> tuple[list[bytes], bool]:
        """What is to be told now, and whether that is all."""
        with self.board.db.read() as connection:
            row = by_internal_id(connection, self.caller.task)
            if self._known is None:
                moves, said = self._begin(connection, row, said)
            else:
                moves = moves_of(connection, row["id"], self._known)
            self._known = self.caller.seen = row["event_seq"]
            ended = Status(row["status"]) in self.until
            if ended:  # what came between the hearing and this look
                said = [*said, *self.caller.take_said()]
            document = None
            if ended:
                document = self.board.task_document(connection, row) if self.whole else {"status": row["status"]}
        # What was said belongs behind the beginning of its attempt, and before that attempt's end.
        begun = max((n for n, move in enumerate(moves, 1) if move["to_status"] == Status.RUNNING), default=0)
        frames = [_status(row, move) for move in moves[:begun]]
        frames += self._said(said)
        frames += [_status(row, move) for move in moves[begun:]]
        if document is not None:
            frames.append(frame("end", {**document, **self.added}, f"{row['event_seq']}-end"))
        return frames, ended

    def _begin(
        self, connection: Connection, row: RowMapping, said: Sequence[Said]
    ) -> tuple[list[RowMapping], Sequence[Said]]:
        """The first look: what he has missed, or where it stands, and how far the present attempt is."""
        if self.after is None or self.after > row["event_seq"]:
            moves = moves_of(connection, row["id"], limit=1)
        else:
            moves = moves_of(connection, row["id"], self.after)
        if Status(row["status"]) in TERMINAL and self.after != 0:
            return moves, ()
        said = [it for it in said if it.attempt >= row["lease_token"]]
        if not said and row["status"] == Status.RUNNING:
            kept = progress_of(connection, row["id"], row["lease_token"])
            if kept and kept.keys() & {"percent", "message"}:
                lease = Lease(row["id"], row["lease_token"])
                said = [Progress.told(lease, kept.get("percent"), kept.get("message"))]
        return moves, said

    def _said(self, said: Sequence[Said]) -> list[bytes]:
        frames = []
        for it in said:
            if isinstance(it, Progress):
                message = None if it.message is None else self.shown(it.message)
                data: dict[str, Any] = {"attempt": it.attempt, "percent": it.percent, "message": message}
                frames.append(frame("progress", data))
            else:
                data = {"attempt": it.attempt, "offset": it.offset, "next": it.offset + len(it.text)}
                frames.append(frame("text", data | {"text": self.shown(it.text)}))
        return frames


class Listening(Protocol):
    def close(self) -> None:
        """Nothing more is heard."""


class EventStream(StreamingResponse):
    """The answer to a caller who listens on. It lets go of him (`caller.close()`) however it ends."""

    media_type = "text/event-stream"

    def __init__(self, caller: Listening, events: AsyncGenerator[bytes, None], status_code: int = 200) -> None:
        # X-Accel-Buffering: nginx would otherwise collect events until a buffer is full.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        self._events, self._caller = events, caller
        super().__init__(events, status_code, headers)

    @classmethod
    def of_one(cls, caller: Caller, document: Mapping[str, Any], status_code: int) -> EventStream:
        """For a task of which nothing more is to be told: its status, and the end."""

        async def events() -> AsyncGenerator[bytes, None]:
            yield frame("status", {"status": document["status"]})
            yield frame("end", document)

        return cls(caller, events(), status_code)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["state"].get("headless"):  # nobody follows without a body
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                await send({"type": "http.response.body", "body": b""})
            else:
                await super().__call__(scope, receive, send)
        finally:
            self._caller.close()
            await self._events.aclose()


def frame(event: str, data: Mapping[str, Any], id: str | None = None) -> bytes:
    """One server-sent event; data: JSON in one line."""
    return format_sse_event(event=event, data_str=json.dumps(data, ensure_ascii=False, allow_nan=False), id=id)


def _status(row: RowMapping, move: RowMapping) -> bytes:
    data = {
        "status": move["to_status"],
        "from": move["from_status"],
        "phase": row["phase"],
        "kind": move["kind"],
        "attempt": move["attempt"],
        "at": view.time(move["at"]),
    }
    return frame("status", data, str(move["seq"]))
