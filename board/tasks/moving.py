"""The statements behind every move: one for a task alone, one for many attempts that end at the same time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, insert, or_, update

from board.db.clock import now, read_now
from board.db.many import ROWS, given, insert_many, new, pack, split, update_many
from board.db.types import UtcTime
from board.tasks.claiming import Claiming, Lease
from board.tasks.followers import Moved
from board.tasks.history import KINDS, By, event_row, record
from board.tasks.models import task_data, task_events, tasks
from board.tasks.states import RANK_FIRST, RANK_USUAL, RULES, TERMINAL, IllegalMove, Move, Phase, Pool, Status


@dataclass(frozen=True, slots=True)
class Change:
    """What a move writes besides the status. columns: of `tasks`; data: columns of `task_data`."""

    by: By
    columns: Mapping[str, Any]
    data: Mapping[str, Any] | None
    note: str | None
    details: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Settlement:
    """How one of many attempts ends.

    changes, data: values of columns of `tasks` and `task_data`, no expressions. wait: seconds until the task is ready
    again, for a move that puts it back in line.
    """

    lease: Lease
    move: Move
    changes: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    wait: float | None = None
    note: str | None = None
    details: Mapping[str, Any] | None = None


class Moving(Claiming):
    """The part of the ledger by which tasks move, and by which workers end their attempts."""

    def settle(
        self,
        tx: Connection,
        lease: Lease,
        move: Move,
        by: By,
        *,
        changes: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        note: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> Moved | None:
        """End an attempt: a worker's move out of `running`, guarded by the lease token.

        changes, data: further columns of `tasks` and `task_data`. A task whose cancellation was asked can only STOP.
        None: the lease was lost; the stale result is refused and recorded as an event.
        """
        guards = [tasks.c.lease_token == lease.token]
        if move is not Move.STOP:
            guards.append(tasks.c.cancel_requested.is_(False))
        change = Change(by, changes or {}, data, note, details)
        moved = self._move(tx, lease.task, move, Status.RUNNING, guards, change)
        if moved is None and not (move is not Move.STOP and self.cancelling(tx, lease)):
            record(tx, lease.task, "stale_result", by, note=f"A late “{move}” of attempt {lease.token} was refused.")
        return moved

    def settle_many(self, tx: Connection, ends: Sequence[Settlement], by: By) -> dict[Lease, Moved]:
        """End many attempts by the guards of `settle`, in a few statements whatever their number.

        What is missing in the answer was not moved, and nothing was recorded of it: its lease is lost or its
        cancellation was asked. That is for `settle` to find out.
        """
        moment = read_now(tx)
        alike: dict[tuple[Move, frozenset[str]], list[tuple[Settlement, dict[str, Any]]]] = defaultdict(list)
        for end in sorted(ends, key=lambda end: end.lease.task):  # two who lock many rows lock them in one order
            changes = dict(end.changes)
            if end.wait is not None:
                changes["ready_at"] = moment + timedelta(seconds=end.wait)
            alike[end.move, frozenset(changes)].append((end, changes))
        moved: dict[Lease, Moved] = {}
        for (move, _), group in alike.items():
            moved |= _settle_alike(tx, move, group, by, moment)
        made = [end for end in ends if end.lease in moved]
        for rows in _by_columns([{"task": end.lease.task, **end.data} for end in made if end.data]):
            update_many(tx, task_data, ["task"], rows, changed_only=True)
        insert_many(
            tx,
            task_events,
            [
                event_row(it.task, KINDS[it.move], by, moved=(it.source, it.status), note=it.note, data=it.data)
                for it in moved.values()
            ],
        )
        for it in moved.values():
            self._follow(tx, it)
        return moved

    def _move(
        self,
        tx: Connection,
        task: int,
        move: Move,
        source: Status,
        guards: Sequence[ColumnElement[bool]],
        change: Change,
    ) -> Moved | None:
        rule = RULES[move]
        if source not in rule.sources:
            raise IllegalMove(move, source, Phase.WORK)
        row = (
            tx.execute(
                update(tasks)
                .where(tasks.c.id == task, tasks.c.status == source, tasks.c.phase.in_(list(rule.phases)), *guards)
                .values(_written(move, now()) | dict(change.columns))
                .returning(tasks)
            )
            .mappings()
            .first()
        )
        if row is None:
            return None
        if change.data:
            tx.execute(update(task_data).where(task_data.c.task == task).values(**change.data))
        details = None if change.details is None else dict(change.details)
        event = event_row(row, KINDS[move], change.by, moved=(source, rule.to), note=change.note, data=details)
        tx.execute(insert(task_events), [event])
        moved = Moved(move, row, source, change.by, change.note, details)
        self._follow(tx, moved)
        return moved


def _written(move: Move, moment: ColumnElement[Any]) -> dict[str, Any]:
    """The columns that a move writes by itself."""
    rule = RULES[move]
    values: dict[str, Any] = {
        "status": rule.to,
        "version": tasks.c.version + 1,
        "event_seq": tasks.c.event_seq + 1,
        "updated_at": moment,
        "lease_owner": None,
        "lease_until": None,
        "held_by": None,
        "let_in": None,
        "reconciling": move is Move.RECONCILE,
        "finished_at": moment if rule.to in TERMINAL else None,
    }
    if rule.to in TERMINAL:
        late = tasks.c.deadline_at.is_not(None) & (tasks.c.deadline_at < moment)
        values |= {"hurry_at": None, "deadline_missed": or_(tasks.c.deadline_missed, late)}
    if rule.to_phase is not None:
        acting = rule.to_phase is Phase.ACT
        values |= {
            "phase": rule.to_phase,
            "pool": Pool.BOARD if acting else tasks.c.home_pool,
            "rank": RANK_FIRST if acting else RANK_USUAL,
        }
    return values


def _settle_alike(
    tx: Connection, move: Move, ends: Sequence[tuple[Settlement, dict[str, Any]]], by: By, moment: datetime
) -> dict[Lease, Moved]:
    """Make one move of many tasks. ends: each with what it changes, in the same columns."""
    same, differ = split(tasks, [changes for _, changes in ends])
    rows = [{"id": end.lease.task, "lease_token": end.lease.token, **changes} for end, changes in ends]
    dialect = tx.dialect.name
    parameters = {f"new_{name}": value for name, value in same.items()} | {
        "moment": moment,
        ROWS: pack(dialect, tasks, (*_KEY, *differ), rows),
    }
    ended = {end.lease.task: end for end, _ in ends}
    moved: dict[Lease, Moved] = {}
    for row in tx.execute(_settling(dialect, move, tuple(same), differ), parameters).mappings():
        end = ended[row["id"]]
        details = None if end.details is None else dict(end.details)
        moved[end.lease] = Moved(move, row, Status.RUNNING, by, end.note, details)
    return moved


_KEY = ("id", "lease_token")


@lru_cache(maxsize=100)
def _settling(dialect: str, move: Move, same: tuple[str, ...], differ: tuple[str, ...]) -> Any:
    """Ends many attempts: each row is found by its primary key, one after another, and guarded as in `settle`."""
    rule = RULES[move]
    if Status.RUNNING not in rule.sources:
        raise IllegalMove(move, Status.RUNNING, Phase.WORK)
    rows = given(dialect, tasks, (*_KEY, *differ))
    values: dict[str, Any] = {name: new(tasks, name) for name in same} | {name: rows.c[name] for name in differ}
    guards = [tasks.c.id == rows.c.id, tasks.c.lease_token == rows.c.lease_token]
    if move is not Move.STOP:
        guards.append(tasks.c.cancel_requested.is_(False))
    return (
        update(tasks)
        .where(*guards, tasks.c.status == Status.RUNNING, tasks.c.phase.in_(list(rule.phases)))
        .values(_written(move, bindparam("moment", type_=UtcTime())) | values)
        .returning(tasks)
    )


def _by_columns(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    alike: dict[frozenset[str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        alike[frozenset(row)].append(row)
    return list(alike.values())
