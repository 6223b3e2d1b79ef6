"""Word of moves to the processes: as soon as one is committed, those hear of it who work, and those who wait for it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from board.db.engine import after_commit, after_commit_with
from board.signals.hub import Signals
from board.signals.signal import Call
from board.tasks.claiming import stands_in_line
from board.tasks.followers import Moved
from board.tasks.states import READY, Pool, Status

# Who is to look for work of a pool.
CALLS: dict[str, Call] = {Pool.BOARD: Call.WORK, Pool.FILES: Call.WORK, Pool.OUTSIDE: Call.OUTSIDE}


class Telling:
    """A follower of the ledger. by_redis: what comes into line is told as soon as Redis has it, and not here."""

    def __init__(self, signals: Signals, *, by_redis: bool) -> None:
        self._signals, self._by_redis = signals, by_redis

    def __call__(self, tx: Connection, moved: Moved) -> None:
        self.all(tx, [moved])

    def all(self, tx: Connection, moves: Sequence[Moved]) -> None:
        calls = {call: None for moved in moves for call in self._calls(moved)}
        for call in calls:
            after_commit(tx, self._signals.sender(call))
        if changed := [moved.task["id"] for moved in moves if moved.source is not None]:
            after_commit_with(tx, self._signals.changed, changed)

    def _calls(self, moved: Moved) -> list[Call]:
        task, status = moved.task, moved.status
        calls: list[Call] = []
        if status in READY:
            if not (self._by_redis and stands_in_line(task)):
                calls.append(CALLS[task["pool"]])
        elif status is not Status.RUNNING and task["callback_url"]:
            calls.append(Call.OUTBOX)
        if status is Status.NEEDS_REVIEW or moved.source is Status.NEEDS_REVIEW:
            calls.append(Call.REVIEWS)
        return calls
