"""The history of a task: who did what, when, from where to where. Only ever added to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    RowMapping,
    Select,
    Text,
    bindparam,
    func,
    insert,
    literal,
    null,
    select,
    update,
)

from board.db.clock import now
from board.db.pages import Key, Page, after, page
from board.db.types import UtcTime
from board.tasks.models import task_events, tasks
from board.tasks.states import Move


@dataclass(frozen=True, slots=True)
class By:
    """Who did it. kind: person, key, worker, timer, system. channel: api, web, cli, worker, timer."""

    kind: str
    name: str
    channel: str

    @property
    def identity(self) -> str:
        """The name under which rights and repeats are compared: `user:EMAIL`, `key:NAME`."""
        return f"{'user' if self.kind == 'person' else self.kind}:{self.name}"


TIMER = By("timer", "board", "timer")
NOTE = "note"  # the kind of an event that somebody wrote by hand
MANY = 500  # ids in one statement; SQLite takes 32,766 parameters, older builds 999

# The event's kind: what a reader of the history sees.
KINDS: dict[Move, str] = {
    Move.CREATE: "created",
    Move.CLAIM: "started",
    Move.SUCCEED: "done",
    Move.PROCEED: "work_done",
    Move.ASK: "review_asked",
    Move.ASK_UNKNOWN: "outcome_unknown",
    Move.RETRY: "retry_planned",
    Move.RECONCILE: "reconcile_planned",
    Move.FAIL: "failed",
    Move.HAND_BACK: "handed_back",
    Move.RESCUE: "lease_lost",
    Move.GIVE_UP: "worker_died",
    Move.STOP: "cancelled",
    Move.APPROVE: "approved",
    Move.ANSWER: "form_answered",
    Move.FINISH: "done",
    Move.REVISE: "revised",
    Move.REJECT: "rejected",
    Move.EXPIRE: "review_expired",
    Move.EXPIRE_FAILED: "review_expired",
    Move.UNDO_APPROVE: "decision_undone",
    Move.UNDO_REJECT: "decision_undone",
    Move.HAPPENED: "confirmed_happened",
    Move.HAPPENED_GO_ON: "confirmed_happened",
    Move.SEND_AGAIN: "send_again",
    Move.DROP: "dropped",
    Move.CANCEL: "cancelled",
    Move.REQUEUE: "requeued",
    Move.REQUEUE_WORK: "requeued",
    Move.RUN_NOW: "run_now",
}


def event_row(
    row: RowMapping,
    kind: str,
    by: By,
    *,
    moved: tuple[str | None, str] | None = None,
    note: str | None = None,
    data: dict[str, Any] | None = None,
    at: datetime | None = None,
) -> dict[str, Any]:
    """An event as a row for `task_events`. `row`: the task after the change, with its new `event_seq`."""
    source, target = moved or (None, None)
    return {
        "task": row["id"],
        "seq": row["event_seq"],
        "at": at or row["updated_at"],
        "kind": kind,
        "from_status": source,
        "to_status": target,
        "actor_kind": by.kind,
        "actor_name": by.name,
        "channel": by.channel,
        "attempt": row["lease_token"] or None,
        "note": note,
        "data": data,
    }


# The columns of an event that `told` selects.
TOLD = (
    *("task", "seq", "at", "kind", "from_status", "to_status"),
    *("actor_kind", "actor_name", "channel", "attempt", "note", "data"),
)


def told(
    moved: FromClause,
    move: Move,
    source: ColumnElement[Any],
    target: ColumnElement[Any],
    note: ColumnElement[Any] | None = None,
    data: ColumnElement[Any] | None = None,
) -> Select[Any]:
    """The events of many tasks that make the same move, as a query on their rows after it, for `by_parameters`."""
    at = bindparam("moment", type_=UtcTime())
    actor = [bindparam(name, type_=Text()) for name in _ACTOR]
    kind = literal(KINDS[move], Text())
    rest = [null() if it is None else it for it in (note, data)]
    return select(
        moved.c.id, moved.c.event_seq, at, kind, source, target, *actor, func.nullif(moved.c.lease_token, 0), *rest
    )


_ACTOR = ("by_kind", "by_name", "by_channel")


def by_parameters(by: By) -> dict[str, Any]:
    """The parameters of `told`; another one is `moment`."""
    return dict(zip(_ACTOR, (by.kind, by.name, by.channel), strict=True))


def record(
    tx: Connection, task: int, kind: str, by: By, *, note: str | None = None, data: dict[str, Any] | None = None
) -> None:
    """Add an event that changes no status (a stale result, a duplicate, a note)."""
    row = (
        tx.execute(
            update(tasks)
            .where(tasks.c.id == task)
            .values(event_seq=tasks.c.event_seq + 1)
            .returning(tasks.c.id, tasks.c.event_seq, tasks.c.lease_token, now().label("at"))
        )
        .mappings()
        .first()
    )
    if row is not None:
        tx.execute(insert(task_events), [event_row(row, kind, by, note=note, data=data, at=row["at"])])


def moves_of(connection: Connection, task: int, after_seq: int = 0, limit: int = 1000) -> list[RowMapping]:
    """The last events that changed the status of one task, oldest first."""
    moved = task_events.c.to_status.is_not(None)
    statement = select(task_events).where(task_events.c.task == task, task_events.c.seq > after_seq, moved)
    return list(connection.execute(statement.order_by(task_events.c.seq.desc()).limit(limit)).mappings())[::-1]


def notes_of(connection: Connection, task: int, limit: int) -> list[RowMapping]:
    """The last notes that were written into the history of one task, oldest first."""
    return notes_page(connection, task, None, limit).rows


def notes_page(connection: Connection, task: int, cursor: str | None, limit: int) -> Page:
    """The same page by page: the last ones first, within a page oldest first. Raises BadCursor."""
    keys = [Key(task_events.c.seq, "seq", descending=True)]
    statement = select(task_events).where(task_events.c.task == task, task_events.c.kind == NOTE)
    found = page(connection.execute(after(statement, keys, cursor, limit)).mappings().all(), keys, limit)
    return Page(found.rows[::-1], found.next_cursor)


def event_seqs(connection: Connection, ids: Sequence[int]) -> dict[int, int]:
    """The number of the last event of each of these tasks that exists: by the primary key, however many they are."""
    found: dict[int, int] = {}
    for begin in range(0, len(ids), MANY):
        query = select(tasks.c.id, tasks.c.event_seq).where(tasks.c.id.in_(ids[begin : begin + MANY]))
        found |= {row.id: row.event_seq for row in connection.execute(query)}
    return found


def events_of(connection: Connection, task: int, after_seq: int = 0, limit: int = 1000) -> list[RowMapping]:
    """The events of one task, oldest first."""
    statement = (
        select(task_events)
        .where(task_events.c.task == task, task_events.c.seq > after_seq)
        .order_by(task_events.c.seq)
        .limit(limit)
    )
    return list(connection.execute(statement).mappings())
